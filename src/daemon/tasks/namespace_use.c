#include "daemon/tasks/namespace_use.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "daemon/state/tenant.h"
#include "daemon/tasks/watch/gpu_watch.h"

#define GIB 1073741824.0
/* Use is counted once a second while tenants exist. For a longer gap, which had no tenants, no memory use is added. */
#define GAP_MOST_NS (10 * NSEC_PER_SEC)

static struct namespace_use *find(struct namespace_uses *u, const char *name)
{
	for (unsigned i = 0; i < u->count; i++)
		if (!strcmp(u->list[i].name, name))
			return &u->list[i];
	/* Entry 0 must be "", which also stands for all namespaces that do not fit. */
	if (*name && u->count == 0)
		find(u, "");
	if (u->count == NAMESPACE_USES_MOST)
		return &u->list[0];
	struct namespace_use *fresh = &u->list[u->count++];
	*fresh = (struct namespace_use){ 0 };
	snprintf(fresh->name, sizeof(fresh->name), "%s", name);
	return fresh;
}

static void count_charge(struct namespace_use *u, struct tenant_device *d, uint64_t now_ns)
{
	uint64_t charged_ns = d->lessee ? lessee_figures(d->lessee).account.charged_ns : 0;
	if (charged_ns <= d->counted_ns)
		return;
	u->charged_ns += charged_ns - d->counted_ns;
	d->counted_ns = charged_ns;
	d->worked_ns = now_ns;
}

static void count(struct tenant *t, bool has_worked, uint64_t now_ns, uint64_t passed_ns)
{
	const struct engine_name *who = gpu_watch_tenant_name(t->node->watch, t);
	struct namespace_use *u = find(t->node->namespaces, who ? who->namespace : "");
	for (unsigned i = 0; i < t->terms.device_count; i++) {
		if (has_worked)
			count_charge(u, &t->device[i], now_ns);
		/*
		 * When a tenant ends, passed_ns is 0. tenant_usage() must not be called then, because the tenant may not have
		 * been made completely.
		 */
		if (passed_ns)
			u->gib_seconds += (double)tenant_usage(t, i).used_bytes / GIB *
					  ((double)passed_ns / (double)NSEC_PER_SEC);
	}
}

void namespace_use_count(struct node *node, bool has_worked, uint64_t now_ns)
{
	struct namespace_uses *u = node->namespaces;
	uint64_t passed_ns = u->counted_ns ? now_ns - u->counted_ns : 0;
	struct tenant *t;
	if (passed_ns > GAP_MOST_NS)
		passed_ns = 0;
	TAILQ_FOREACH(t, &node->tenants, link)
		count(t, has_worked, now_ns, passed_ns);
	u->counted_ns = now_ns;
}

void namespace_use_end(struct tenant *t)
{
	count(t, true, clock_now_ns(), 0);
}

int namespace_use_start(struct node *node, struct error *err)
{
	node->namespaces = calloc(1, sizeof(*node->namespaces));
	return node->namespaces ? 0 : error_set_errno(err, ENOMEM, "use by namespace");
}

void namespace_use_stop(struct node *node)
{
	free(node->namespaces);
	node->namespaces = NULL;
}
