#include "daemon/state/node/subsystem.h"

#include "daemon/state/node/node.h"

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

bool any_needs_census(const struct node *node)
{
	for (const struct subsystem *s = node->subsystems; s && s->name; s++)
		if (s->needs_census && s->needs_census(node))
			return true;
	return false;
}

void notify_tenants_changed(struct node *node)
{
	bool was_populated = node->populated;
	node->populated = node->tenant_count > 0;
	NOTIFY(node, tenants_changed, node);
	if (node->populated != was_populated)
		NOTIFY(node, populated_changed, node);
}
