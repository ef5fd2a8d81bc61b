#include "node/use.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "node/tenant.h"

#define USE_LEAST_NS 1e6 /* what is less is not worth remembering */

static double left_of(const struct node *node, const struct fade *f, uint64_t now_ns)
{
	return fade_use_ns(f, now_ns, node->config.use_half_life_ns);
}

static struct past_use *find(struct node *node, uid_t uid, const char *name)
{
	for (unsigned i = 0; i < NODE_PAST_USES; i++) {
		struct past_use *p = &node->past_use[i];
		if (*p->name && p->uid == uid && !strcmp(p->name, name))
			return p;
	}
	return NULL;
}

/* Its place in the table: where there is none left, that of the least use. */
static struct past_use *find_place(struct node *node, uint64_t now_ns)
{
	struct past_use *least = &node->past_use[0];
	for (unsigned i = 0; i < NODE_PAST_USES; i++) {
		struct past_use *p = &node->past_use[i];
		if (!*p->name)
			return p;
		if (left_of(node, &p->use, now_ns) < left_of(node, &least->use, now_ns))
			least = p;
	}
	return least;
}

void use_begin(struct tenant *tenant)
{
	struct past_use *p = find(tenant->node, tenant->terms.uid, tenant->terms.name);
	if (!p)
		return;
	tenant->use = p->use;
	*p->name = '\0';
}

void use_update(struct tenant *tenant, uint64_t now_ns)
{
	uint64_t charged_ns = 0;
	for (unsigned i = 0; i < tenant->terms.device_count; i++)
		if (tenant->device[i].lessee)
			charged_ns += lessee_figures(tenant->device[i].lessee).account.charged_ns;
	fade_add(&tenant->use, now_ns, charged_ns - tenant->use_charged_ns,
		 tenant->node->config.use_half_life_ns);
	tenant->use_charged_ns = charged_ns;
}

double use_ns(const struct tenant *tenant, uint64_t now_ns)
{
	return left_of(tenant->node, &tenant->use, now_ns);
}

void use_end(struct tenant *tenant)
{
	uint64_t now_ns = clock_now_ns();
	use_update(tenant, now_ns);
	double left_ns = use_ns(tenant, now_ns);
	struct past_use *p = find_place(tenant->node, now_ns);
	if (left_ns < USE_LEAST_NS || (*p->name && left_of(tenant->node, &p->use, now_ns) > left_ns))
		return;
	p->uid = tenant->terms.uid;
	p->use = tenant->use;
	strcpy(p->name, tenant->terms.name);
}

void use_restore(struct tenant *tenant, double use_left_ns)
{
	tenant->use = (struct fade){ .use_ns = use_left_ns, .at_ns = clock_now_ns() };
}
