#include "daemon/state/use.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/parse.h"
#include "daemon/state/tenant.h"

#define USE_LEAST_NS 1e6 /* less GPU time is not worth remembering */

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

/* Of two uses of the same name and user, as after a rename, keeps the larger. A full table drops the smallest use. */
static void remember(struct node *node, const struct past_use *past, uint64_t now_ns)
{
	struct past_use *p = find(node, past->uid, past->name);
	if (!p)
		p = find_place(node, now_ns);
	if (!*p->name || left_of(node, &p->use, now_ns) < left_of(node, &past->use, now_ns))
		*p = *past;
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
	if (charged_ns != tenant->use_charged_ns)
		node_save_use_soon(tenant->node);
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
	if (use_ns(tenant, now_ns) < USE_LEAST_NS)
		return;
	struct past_use p = { .uid = tenant->terms.uid, .use = tenant->use };
	strcpy(p.name, tenant->terms.name);
	remember(tenant->node, &p, now_ns);
}

void use_restore(struct tenant *tenant, double use_left_ns)
{
	tenant->use = (struct fade){ .use_ns = use_left_ns, .at_ns = clock_now_ns() };
}

static void append(json_t *list, const char *name, uid_t uid, double left_ns)
{
	if (left_ns >= USE_LEAST_NS)
		json_array_append_new(list, json_pack("{s:s, s:I, s:f}", "name", name, "uid",
						      (json_int_t)uid, "use_s",
						      left_ns / (double)NSEC_PER_SEC));
}

json_t *use_to_json(struct node *node)
{
	json_t *list = json_array();
	uint64_t now_ns = clock_now_ns();
	struct tenant *t;
	TAILQ_FOREACH(t, &node->tenants, link)
		append(list, t->terms.name, t->terms.uid, use_ns(t, now_ns));
	for (unsigned i = 0; i < NODE_PAST_USES; i++) {
		const struct past_use *p = &node->past_use[i];
		if (*p->name)
			append(list, p->name, p->uid, left_of(node, &p->use, now_ns));
	}
	return list;
}

static int past_from_json(const json_t *json, struct past_use *ret, struct error *err)
{
	struct past_use p = { 0 };
	const char *name = NULL;
	int64_t uid = 0;
	double use_s = -1;
	if (json_read_string(json, "name", &name, err) <= 0 || parse_name(name, NULL) < 0 ||
	    json_read_int(json, "uid", 0, UINT32_MAX - 1, &uid, err) <= 0 ||
	    json_read_number(json, "use_s", &use_s, err) <= 0 || !(use_s >= 0 && use_s < USE_MOST_S))
		return error_set(err, EINVAL, "tenants: name, uid or use_s is missing or invalid");
	strcpy(p.name, name);
	p.uid = (uid_t)uid;
	p.use.use_ns = use_s * (double)NSEC_PER_SEC;
	*ret = p;
	return 0;
}

int use_from_json(struct node *node, const json_t *list, uint64_t passed_ns, struct error *err)
{
	struct past_use p;
	uint64_t now_ns = clock_now_ns();
	for (size_t i = 0; i < json_array_size(list); i++) {
		int r = past_from_json(json_array_get(list, i), &p, err);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < json_array_size(list); i++) {
		past_from_json(json_array_get(list, i), &p, NULL);
		p.use = fade_after(p.use.use_ns, passed_ns, now_ns, node->config.use_half_life_ns);
		remember(node, &p, now_ns);
	}
	return 0;
}
