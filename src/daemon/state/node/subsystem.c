#include "daemon/state/node/subsystem.h"

#include "daemon/state/node/node.h"

/* Calls the handler `what` of each subsystem that has one, in table order. */
#define TELL(node, what, ...) \
	for (const struct subsystem *s = (node)->subsystems; s && s->name; s++) \
		if (s->what) \
	s->what(__VA_ARGS__)

int notify_tenant_added(struct node *node, struct tenant *tenant, bool is_new, struct error *err)
{
	for (const struct subsystem *s = node->subsystems; s && s->name; s++) {
		int r = s->tenant_added ? s->tenant_added(tenant, is_new, err) : 0;
		if (r < 0)
			return r;
		if (s->tenant_begins)
			s->tenant_begins(tenant);
	}
	return 0;
}

void notify_tenant_removed(struct node *node, struct tenant *tenant)
{
	const struct subsystem *first = node->subsystems, *s = first;
	while (s && s->name)
		s++;
	while (s != first)
		if ((--s)->tenant_removed)
			s->tenant_removed(tenant);
}

void notify_tenant_ended(struct node *node, struct tenant *tenant, const char *why)
{
	TELL(node, tenant_ended, tenant, why);
}

void notify_tenant_retired(struct node *node, struct tenant *tenant)
{
	TELL(node, tenant_retired, tenant);
}

void notify_share_changed(struct node *node, struct tenant *tenant)
{
	TELL(node, share_changed, tenant);
}

void notify_processes_changed(struct node *node)
{
	TELL(node, processes_changed, node);
}

void notify_process_gone(struct node *node, struct tenant *tenant, int pid, unsigned slot)
{
	TELL(node, process_gone, tenant, pid, slot);
}

void notify_census_read(struct node *node, const struct census_card *seen)
{
	TELL(node, census_read, node, seen);
}

bool any_needs_census(const struct node *node)
{
	for (const struct subsystem *s = node->subsystems; s && s->name; s++)
		if (s->needs_census && s->needs_census(node))
			return true;
	return false;
}

void notify_cards_polled(struct node *node)
{
	TELL(node, cards_polled, node);
}

void notify_tenants_changed(struct node *node)
{
	bool was_populated = node->populated;
	node->populated = node->tenant_count > 0;
	TELL(node, tenants_changed, node);
	if (node->populated != was_populated)
		TELL(node, populated_changed, node);
}
