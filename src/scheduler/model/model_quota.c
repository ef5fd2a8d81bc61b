/* A namespace's use of cards by all its pods, and the limits of its ResourceQuotas. The tightest limit of each kind counts. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kube/util/sanitize.h"
#include "scheduler/model/model_inside.h"

#define KEY_MAX 512 /* a namespace and a name have at most 253 bytes each */

struct model_quota {
	struct string_map_entry entry;      /* key: "namespace/name" */
	struct model_namespace *name_space; /* a reference */
	struct model_quota *next;           /* in the list of the namespace */
	struct quota_limits limits;
	unsigned listed_in; /* number (model.list) of the latest list with this quota */
	char key[];
};

struct model_namespace *model_namespace_get(struct model *m, const char *name)
{
	struct model_namespace *name_space = string_map_find(&m->namespaces, name);
	if (!name_space) {
		name_space = calloc(1, sizeof(*name_space) + strlen(name) + 1);
		if (!name_space)
			return NULL;
		strcpy(name_space->name, name);
		string_map_add(&m->namespaces, &name_space->entry, name_space->name);
	}
	name_space->references++;
	return name_space;
}

void model_namespace_put(struct model *m, struct model_namespace *name_space)
{
	if (!name_space || --name_space->references)
		return;
	string_map_remove(&m->namespaces, &name_space->entry);
	free(name_space);
}

const struct model_namespace *model_find_limited(const struct model *m, const char *name)
{
	const struct model_namespace *name_space = m->quotas.count
							   ? string_map_find(&m->namespaces, name)
							   : NULL;
	return name_space && quota_has_limits(&name_space->limits) ? name_space : NULL;
}

void model_apply_quota(struct model *m, const char *pod_namespace)
{
	const struct model_namespace *name_space = model_find_limited(m, pod_namespace);
	if (name_space)
		fit_set_quota(&m->fit, &name_space->limits, &name_space->used);
}

/* Computes the namespace's limits. If a limit became higher, waiting pods may fit now. */
static void update_limits(struct model *m, struct model_namespace *name_space)
{
	const struct quota_limits before = name_space->limits;
	name_space->limits = (struct quota_limits){ 0 };
	for (const struct model_quota *q = name_space->quotas; q; q = q->next)
		quota_tighten(&name_space->limits, &q->limits);
	if (quota_allows_more(&name_space->limits, &before))
		model_quota_freed(m, name_space);
}

static void forget(struct model *m, struct model_quota *quota)
{
	struct model_namespace *name_space = quota->name_space;
	struct model_quota **at = &name_space->quotas;
	while (*at != quota)
		at = &(*at)->next;
	*at = quota->next;
	string_map_remove(&m->quotas, &quota->entry);
	update_limits(m, name_space);
	model_namespace_put(m, name_space);
	free(quota);
}

static struct model_quota *new_quota(struct model *m, const char *in, const char *key)
{
	struct model_namespace *name_space = model_namespace_get(m, in);
	struct model_quota *quota = calloc(1, sizeof(*quota) + strlen(key) + 1);
	if (!name_space || !quota) {
		model_namespace_put(m, name_space);
		free(quota);
		return NULL;
	}
	quota->name_space = name_space;
	quota->next = name_space->quotas;
	name_space->quotas = quota;
	strcpy(quota->key, key);
	string_map_add(&m->quotas, &quota->entry, quota->key);
	return quota;
}

/* Reads the quota's key, "namespace/name". *ret_in: the namespace; `object` owns the string. */
static int read_key(const json_t *object, char key[KEY_MAX], const char **ret_in)
{
	const json_t *meta = json_object_get(object, "metadata");
	const char *in = json_string_value(json_object_get(meta, "namespace"));
	const char *name = json_string_value(json_object_get(meta, "name"));
	if (!in || !*in || !name || !*name)
		return -EINVAL;
	*ret_in = in;
	return snprintf(key, KEY_MAX, "%s/%s", in, name) < KEY_MAX ? 0 : -EINVAL;
}

int model_update_quota(struct model *m, const json_t *object, struct error *err)
{
	char key[KEY_MAX];
	const char *in;
	struct quota_limits limits;
	if (read_key(object, key, &in) < 0)
		return error_sanitize(
			err,
			error_set(
				err, EINVAL,
				"a ResourceQuota is ignored: the API server sent it without a valid namespace and name"));
	struct model_quota *quota = string_map_find(&m->quotas, key);
	if (quota)
		quota->listed_in = m->list[MODEL_QUOTAS];
	int r = quota_read(object, &m->terms.request, &limits, err);
	if (r < 0)
		return error_sanitize(err, error_add(err, r, "ResourceQuota %s", key));
	if (!quota_has_limits(&limits)) {
		if (quota)
			forget(m, quota);
		return 0;
	}
	if (!quota)
		quota = new_quota(m, in, key);
	if (!quota)
		return error_set_errno(err, ENOMEM, "ResourceQuota %s", key);
	quota->listed_in = m->list[MODEL_QUOTAS];
	quota->limits = limits;
	update_limits(m, quota->name_space);
	return 0;
}

void model_remove_quota(struct model *m, const json_t *object)
{
	char key[KEY_MAX];
	const char *in;
	struct model_quota *quota = read_key(object, key, &in) < 0
					    ? NULL
					    : string_map_find(&m->quotas, key);
	if (quota)
		forget(m, quota);
}

static void remove_unlisted(void *data, void *thing)
{
	struct model *m = data;
	struct model_quota *quota = thing;
	if (quota->listed_in != m->list[MODEL_QUOTAS])
		forget(m, quota);
}

void model_quotas_list_end(struct model *m)
{
	string_map_each(&m->quotas, remove_unlisted, m);
}

static void free_each(void *data, void *thing)
{
	forget(data, thing);
}

void model_quotas_free(struct model *m)
{
	string_map_each(&m->quotas, free_each, m);
	string_map_free(&m->quotas);
	string_map_free(&m->namespaces);
}

bool model_find_quota(const struct model *m, const char *pod_namespace, struct model_quota_view *ret)
{
	const struct model_namespace *name_space = model_find_limited(m, pod_namespace);
	if (name_space)
		*ret = (struct model_quota_view){ name_space->name, name_space->limits,
						  name_space->used };
	return name_space != NULL;
}

struct walk {
	void (*each)(void *data, const struct model_quota_view *view);
	void *data;
};

static void show(void *data, void *thing)
{
	const struct walk *walk = data;
	const struct model_namespace *name_space = thing;
	walk->each(walk->data, &(struct model_quota_view){ name_space->name, name_space->limits,
							   name_space->used });
}

void model_each_quota(const struct model *m,
		      void (*each)(void *data, const struct model_quota_view *view), void *data)
{
	string_map_each(&m->namespaces, show, &(struct walk){ each, data });
}
