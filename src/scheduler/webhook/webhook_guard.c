#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/settings/settings.h"
#include "kube/util/object.h"
#include "scheduler/webhook/webhook.h"
#include "scheduler/webhook/webhook_inside.h"

/* longest path that is compared with the table of host paths, whose entries are shorter */
#define PATH_BYTES 256
/* value of NVIDIA_VISIBLE_DEVICES that overrides the image's value and shows no GPU */
#define NO_GPU "none"

/* ---- the operator's decision ---- */

/*
 * Treats `what`, a part of the pod that can bypass the library, as the operator configured (`guard`). Returns true if the
 * caller must rewrite that part; sets *ret_r to an error if the pod is denied.
 */
static bool decide(struct webhook_work *w, enum webhook_guard guard, const char *what,
		   const char *right, int *ret_r)
{
	switch (guard) {
	case GUARD_ALLOW: break;
	case GUARD_WARN: webhook_warn(w, "%s", what); break;
	case GUARD_REWRITE: webhook_warn(w, "%s: removed", what); return true;
	case GUARD_DENY: *ret_r = error_set(w->err, EACCES, "%s: %s", what, right); break;
	}
	return false;
}

/* ---- environment ---- */

static bool always(const char *value)
{
	return true;
}

/*
 * Whether the variable may be switched on. `value`: NULL if another object gives the variable's value (valueFrom), which is
 * then unknown.
 */
static bool unless_off(const char *value)
{
	return !value || (strcmp(value, "") && strcmp(value, "false") && strcmp(value, "0"));
}

static bool unless_none(const char *value)
{
	return !value || (strcmp(value, "none") && strcmp(value, "void"));
}

static const struct variable {
	const char *name;
	bool (*matters)(const char *value);
	bool for_others; /* applies also to containers without a GPU request */
} variables[] = {
	{ "LD_PRELOAD", always, false },
	{ "LD_LIBRARY_PATH", always, false },
	{ "NVIDIA_VISIBLE_DEVICES", unless_none, true },
	{ "CUDA_DISABLE_CONTROL", unless_off, false },
};

static const struct variable *find_variable(const json_t *entry, bool requests_gpu)
{
	const char *name = json_string_value(json_object_get(entry, "name"));
	const char *value = json_string_value(json_object_get(entry, "value"));
	if (json_object_get(entry, "valueFrom"))
		value = NULL;
	else if (!value)
		value = "";
	for (size_t i = 0; name && i < sizeof(variables) / sizeof(variables[0]); i++) {
		const struct variable *v = &variables[i];
		if (!strcmp(v->name, name))
			return (requests_gpu || v->for_others) && v->matters(value) ? v : NULL;
	}
	return NULL;
}

/*
 * Sets NVIDIA_VISIBLE_DEVICES to NO_GPU in a container without a GPU request, because CUDA images set it to all GPUs. Keeps a
 * value that the container itself sets.
 */
static void put_no_gpu(struct webhook_work *w, struct webhook_container *c)
{
	cleanup_free char *path = json_patch_path(c->path, "env");
	json_t *list = json_patch_member(&w->patch, c->object, c->path, "env", json_array());
	w->patch.has_failed |= !path;
	if (!list || !path)
		return;
	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *name = json_string_value(
			json_object_get(json_array_get(list, i), "name"));
		if (name && !strcmp(name, "NVIDIA_VISIBLE_DEVICES"))
			return;
	}
	json_patch_append(&w->patch, list, path,
			  json_pack("{s:s,s:s}", "name", "NVIDIA_VISIBLE_DEVICES", "value", NO_GPU));
}

static int guard_environment(struct webhook_work *w, struct webhook_container *c)
{
	cleanup_free char *path = json_patch_path(c->path, "env");
	json_t *list = json_object_get(c->object, "env");
	int r = 0;
	for (size_t i = json_array_size(list); r >= 0 && i-- > 0;) {
		const struct variable *v = find_variable(json_array_get(list, i), c->requests_gpu);
		char what[160];
		if (!v)
			continue;
		snprintf(what, sizeof(what),
			 "container %.63s: environment variable %s can bypass the limits", c->name,
			 v->name);
		if (decide(w, w->terms->environment, what, "leave it out", &r) && path)
			json_patch_remove_at(&w->patch, list, path, i);
	}
	if (r >= 0 && w->terms->environment == GUARD_REWRITE && !c->requests_gpu)
		put_no_gpu(w, c);
	if (r >= 0 && w->terms->environment >= GUARD_REWRITE && c->requests_gpu &&
	    json_array_size(json_object_get(c->object, "envFrom")))
		webhook_warn(w,
			     "container %.63s: environment variables from envFrom are not checked, "
			     "and may bypass the limits: use env instead",
			     c->name);
	return r;
}

/* ---- mounts ---- */

static void normalize(const char *path, char ret[PATH_BYTES])
{
	size_t used = 0;
	while (*path && used + 1 < PATH_BYTES) {
		size_t length;
		path += strspn(path, "/");
		length = strcspn(path, "/");
		if (!length || (length == 1 && *path == '.')) {
			path += length;
			continue;
		}
		if (used + length + 2 > PATH_BYTES)
			break;
		ret[used++] = '/';
		memcpy(ret + used, path, length);
		used += length;
		path += length;
	}
	if (!used)
		ret[used++] = '/';
	ret[used] = '\0';
}

/* Host paths that expose device files or the driver's controls. is_prefix: so do all paths that begin with `path`. */
static const struct {
	const char *path;
	bool is_prefix;
} host_paths[] = {
	{ "/", false },
	{ "/dev", false },
	{ "/dev/nvidia", true },
	{ "/dev/dri", true },
	{ "/dev/char", true },
	{ "/proc", false },
	{ "/proc/driver", false },
	{ "/proc/driver/nvidia", true },
};

static bool shows_devices(const char *path)
{
	char plain[PATH_BYTES];
	normalize(path, plain);
	for (size_t i = 0; i < sizeof(host_paths) / sizeof(host_paths[0]); i++) {
		const char *own = host_paths[i].path;
		if (host_paths[i].is_prefix ? !strncmp(own, plain, strlen(own))
					    : !strcmp(own, plain))
			return true;
	}
	return false;
}

/* Whether a mount at this path would hide the file that loads the library. */
static bool hides_library(const char *path)
{
	char plain[PATH_BYTES];
	normalize(path, plain);
	return !strcmp(plain, "/etc/ld.so.preload");
}

static bool is_named(const json_t *object, const char *name)
{
	const char *own = json_string_value(json_object_get(object, "name"));
	return own && name && !strcmp(own, name);
}

static void remove_mounts(struct webhook_work *w, struct webhook_container *c,
			  bool (*is_wrong)(const json_t *mount, const char *volume),
			  const char *volume)
{
	cleanup_free char *path = json_patch_path(c->path, "volumeMounts");
	json_t *list = json_object_get(c->object, "volumeMounts");
	for (size_t i = json_array_size(list); path && i-- > 0;)
		if (is_wrong(json_array_get(list, i), volume))
			json_patch_remove_at(&w->patch, list, path, i);
}

static bool mount_hides(const json_t *mount, const char *volume)
{
	const char *path = json_string_value(json_object_get(mount, "mountPath"));
	return path && hides_library(path);
}

static int guard_volume(struct webhook_work *w, json_t *list, size_t i)
{
	const json_t *volume = json_array_get(list, i);
	const char *name = json_string_value(json_object_get(volume, "name"));
	const char *path = json_string_value(
		json_object_get(json_object_get(volume, "hostPath"), "path"));
	char what[400];
	int r = 0;
	if (!path || !shows_devices(path))
		return 0;
	snprintf(what, sizeof(what), "volume %.63s: the host path %.200s contains device files",
		 name ? name : "", path);
	if (decide(w, w->terms->mounts, what, "request GPUs in the limits instead", &r)) {
		for (size_t k = 0; name && k < w->containers; k++)
			remove_mounts(w, &w->container[k], is_named, name);
		json_patch_remove_at(&w->patch, list, "/spec/volumes", i);
	}
	return r;
}

static int guard_container_mounts(struct webhook_work *w, struct webhook_container *c)
{
	const json_t *list = json_object_get(c->object, "volumeMounts");
	bool is_wrong = false;
	char what[160];
	int r = 0;
	for (size_t i = 0; i < json_array_size(list); i++)
		is_wrong |= mount_hides(json_array_get(list, i), NULL);
	if (!is_wrong)
		return 0;
	snprintf(what, sizeof(what),
		 "container %.63s: a mount at /etc/ld.so.preload replaces allot's library", c->name);
	if (decide(w, w->terms->mounts, what, "remove that mount", &r))
		remove_mounts(w, c, mount_hides, NULL);
	return r;
}

static int guard_mounts(struct webhook_work *w)
{
	json_t *volumes = json_object_get(json_object_get(w->pod, "spec"), "volumes");
	int r = 0;
	for (size_t i = json_array_size(volumes); r >= 0 && i-- > 0;)
		r = guard_volume(w, volumes, i);
	for (size_t i = 0; r >= 0 && i < w->containers; i++)
		if (w->container[i].requests_gpu)
			r = guard_container_mounts(w, &w->container[i]);
	return r;
}

/* ---- privilege and images ---- */

static int guard_privilege(struct webhook_work *w, struct webhook_container *c)
{
	json_t *context = json_object_get(c->object, "securityContext");
	cleanup_free char *path = json_patch_path(c->path, "securityContext");
	char what[160];
	int r = 0;
	if (!json_is_true(json_object_get(context, "privileged")))
		return 0;
	snprintf(what, sizeof(what), "container %.63s: securityContext.privileged is true%s",
		 c->name, c->requests_gpu ? " (the container requests a GPU)" : "");
	if (decide(w, w->terms->privileged, what,
		   "a privileged container sees all GPUs of its node: remove privileged", &r) &&
	    path)
		json_patch_put(&w->patch, context, path, "privileged", json_false());
	return r;
}

static int check_image(struct webhook_work *w, const struct webhook_container *c)
{
	const char *image = json_string_value(json_object_get(c->object, "image"));
	if (settings_list_matches(w->terms->images, image ? image : ""))
		return 0;
	return error_set(
		w->err, EACCES,
		"container %.63s: image '%.120s' is not allowed to use GPUs: must match %.160s",
		c->name, image ? image : "", w->terms->images);
}

int webhook_guard(struct webhook_work *w, bool is_ours)
{
	bool is_all = w->terms->guards_others;
	int r = 0;
	for (size_t i = 0; r >= 0 && i < w->containers; i++) {
		struct webhook_container *c = &w->container[i];
		if (is_ours || is_all)
			r = guard_environment(w, c);
		if (r >= 0 && (is_all || (is_ours && c->requests_gpu)))
			r = guard_privilege(w, c);
		if (r >= 0 && is_ours && c->requests_gpu)
			r = check_image(w, c);
	}
	return r >= 0 && (is_ours || is_all) ? guard_mounts(w) : r;
}
