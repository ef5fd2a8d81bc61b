#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "base/settings/settings.h"
#include "scheduler/webhook/webhook_guard.h"
#include "scheduler/webhook/webhook_inside.h"

/* value of NVIDIA_VISIBLE_DEVICES that overrides the image's value and shows no GPU */
#define NO_GPU "none"

bool webhook_decide(struct webhook_work *w, enum webhook_guard guard, const char *what,
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

static bool always(const char *value)
{
	return true;
}

/* False if `value` means "off". A value that another object gives (valueFrom) is unknown: NULL, which counts as "on". */
static bool unless_off(const char *value)
{
	return !value || (strcmp(value, "") && strcmp(value, "false") && strcmp(value, "0"));
}

static bool unless_none(const char *value)
{
	return !value || (strcmp(value, "none") && strcmp(value, "void"));
}

static bool never(const char *value)
{
	return false;
}

/* The first row that fits a variable's name decides. */
static const struct variable {
	const char *name;
	bool is_prefix; /* the row is for all names that begin with `name` */
	bool (*matters)(const char *value);
	bool for_others; /* applies also to containers without a GPU request */
} variables[] = {
	{ "LD_", true, always, false }, /* ld.so(8): preloaded, audited and searched libraries */
	{ "GLIBC_TUNABLES", false, always, false },
	{ "ALLOT_LOG", false, never, false },
	{ "ALLOT_", true, always, false },
	{ "CUDA_MPS_", true, always, false },
	{ "NVIDIA_VISIBLE_DEVICES", false, unless_none, true },
	{ "CUDA_DISABLE_CONTROL", false, unless_off, false },
};
#define VARIABLES (sizeof(variables) / sizeof(variables[0]))

/* Returns the name of the variable if it can bypass the limits, else NULL. */
static const char *bypassing_variable(const json_t *entry, bool requests_gpu)
{
	const char *name = json_string_value(json_object_get(entry, "name"));
	const char *value = json_string_value(json_object_get(entry, "value"));
	if (json_object_get(entry, "valueFrom"))
		value = NULL;
	else if (!value)
		value = "";
	for (size_t i = 0; name && i < VARIABLES; i++) {
		const struct variable *v = &variables[i];
		if (v->is_prefix ? !strncmp(name, v->name, strlen(v->name)) : !strcmp(name, v->name))
			return (requests_gpu || v->for_others) && v->matters(value) ? name : NULL;
	}
	return NULL;
}

/* Whether a variable of an envFrom, whose name begins with `prefix`, can match a row of the table. */
static bool may_bypass(const char *prefix)
{
	for (size_t i = 0; i < VARIABLES; i++) {
		const struct variable *v = &variables[i];
		size_t own = strlen(v->name), length = strlen(prefix);
		if (v->is_prefix && own < length)
			length = own;
		if (length <= own && !strncmp(v->name, prefix, length))
			return true;
	}
	return false;
}

/* CUDA images set NVIDIA_VISIBLE_DEVICES to all GPUs. Sets it to NO_GPU, unless the container itself sets a value. */
static void put_no_gpu(struct webhook_work *w, struct webhook_container *c)
{
	json_t *list = json_patch_member(&w->patch, c->object, c->path, "env", json_array());
	char path[WEBHOOK_PATH_SIZE];
	snprintf(path, sizeof(path), "%s/env", c->path);
	if (!list)
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

/* envFrom's variables are in another object, which may change later, so they can neither be checked nor rewritten. */
static int guard_env_from(struct webhook_work *w, const struct webhook_container *c)
{
	const json_t *list = json_object_get(c->object, "envFrom"), *entry;
	bool can_bypass = false;
	size_t i;
	json_array_foreach(list, i, entry)
	{
		can_bypass |= may_bypass(json_string_or(entry, "prefix", ""));
	}
	if (!can_bypass || w->terms->environment == GUARD_ALLOW)
		return 0;
	if (w->terms->environment == GUARD_DENY)
		return error_set(w->err, EACCES,
				 "container %.63s: environment variables from envFrom can bypass the "
				 "limits: use env, or give envFrom a prefix such as APP_",
				 c->name);
	webhook_warn(w,
		     "container %.63s: environment variables from envFrom are not checked, and may "
		     "bypass the limits: use env, or give envFrom a prefix such as APP_",
		     c->name);
	return 0;
}

static int guard_environment(struct webhook_work *w, struct webhook_container *c)
{
	json_t *list = json_object_get(c->object, "env");
	char path[WEBHOOK_PATH_SIZE];
	int r = 0;
	snprintf(path, sizeof(path), "%s/env", c->path);
	for (size_t i = json_array_size(list); r >= 0 && i-- > 0;) {
		const char *name = bypassing_variable(json_array_get(list, i), c->requests_gpu);
		char what[240];
		if (!name)
			continue;
		snprintf(what, sizeof(what),
			 "container %.63s: environment variable %.100s can bypass the limits",
			 c->name, name);
		if (webhook_decide(w, w->terms->environment, what, "leave it out", &r))
			json_patch_remove_at(&w->patch, list, path, i);
	}
	if (r >= 0 && w->terms->environment >= GUARD_REWRITE && !c->requests_gpu)
		put_no_gpu(w, c);
	return r >= 0 && c->requests_gpu ? guard_env_from(w, c) : r;
}

static int guard_privileged(struct webhook_work *w, struct webhook_container *c)
{
	json_t *context = json_object_get(c->object, "securityContext");
	char what[160], path[WEBHOOK_PATH_SIZE];
	int r = 0;
	if (!json_is_true(json_object_get(context, "privileged")))
		return 0;
	snprintf(what, sizeof(what), "container %.63s: securityContext.privileged is true%s",
		 c->name, c->requests_gpu ? " (the container requests a GPU)" : "");
	snprintf(path, sizeof(path), "%s/securityContext", c->path);
	if (webhook_decide(w, w->terms->privileged, what,
			   "a privileged container sees all GPUs of its node: remove privileged", &r))
		json_patch_put(&w->patch, context, path, "privileged", json_false());
	return r;
}

/* Harmless capabilities: they reach nothing outside of the container. Engines give most of them to every container. */
static const char *const capabilities[] = {
	"AUDIT_WRITE", "CHOWN",      "DAC_OVERRIDE", "FOWNER",           "FSETID",
	"IPC_LOCK",    "KILL",       "MKNOD",        "NET_RAW",          "SETFCAP",
	"SETGID",      "SETPCAP",    "SETUID",       "NET_BIND_SERVICE", "SYS_CHROOT",
	"SYS_NICE",    "SYS_PTRACE", "SYS_RESOURCE",
};

static bool stays_inside(const char *capability)
{
	if (!strncasecmp(capability, "CAP_", 4))
		capability += 4;
	for (size_t i = 0; i < sizeof(capabilities) / sizeof(capabilities[0]); i++)
		if (!strcasecmp(capability, capabilities[i]))
			return true;
	return false;
}

static int guard_capabilities(struct webhook_work *w, struct webhook_container *c)
{
	json_t *list = json_object_get(
		json_object_get(json_object_get(c->object, "securityContext"), "capabilities"),
		"add");
	char path[WEBHOOK_PATH_SIZE];
	int r = 0;
	snprintf(path, sizeof(path), "%s/securityContext/capabilities/add", c->path);
	for (size_t i = json_array_size(list); r >= 0 && i-- > 0;) {
		const char *name = json_string_value(json_array_get(list, i));
		char what[240];
		if (!name || stays_inside(name))
			continue;
		snprintf(what, sizeof(what), "container %.63s: capability %.60s reaches the node",
			 c->name, name);
		if (webhook_decide(w, w->terms->privileged, what, "leave it out", &r))
			json_patch_remove_at(&w->patch, list, path, i);
	}
	return r;
}

/* Guards hostPID and hostIPC, but not hostNetwork: that is common in jobs of several nodes, and no limit depends on it. */
static int guard_namespaces(struct webhook_work *w)
{
	static const char *const names[] = { "hostPID", "hostIPC" };
	json_t *spec = json_object_get(w->pod, "spec");
	int r = 0;
	for (size_t i = 0; r >= 0 && i < 2; i++) {
		char what[80];
		if (!json_is_true(json_object_get(spec, names[i])))
			continue;
		snprintf(what, sizeof(what), "spec.%s: the pod reaches processes of others",
			 names[i]);
		if (webhook_decide(w, w->terms->privileged, what, "leave it out", &r))
			json_patch_put(&w->patch, spec, "/spec", names[i], json_false());
	}
	return r;
}

static int check_image(struct webhook_work *w, const struct webhook_container *c)
{
	const char *image = json_string_or(c->object, "image", "");
	if (settings_list_matches(w->terms->images, image))
		return 0;
	return error_set(
		w->err, EACCES,
		"container %.63s: image '%.120s' is not allowed to use GPUs: must match %.160s",
		c->name, image, w->terms->images);
}

static int guard_container(struct webhook_work *w, struct webhook_container *c, bool is_ours)
{
	bool is_all = w->terms->guards_others;
	int r = is_ours || is_all ? guard_environment(w, c) : 0;
	if (is_all || (is_ours && (c->requests_gpu || c->is_ephemeral))) {
		r = r >= 0 ? guard_privileged(w, c) : r;
		r = r >= 0 ? guard_capabilities(w, c) : r;
	}
	return r >= 0 && is_ours && c->requests_gpu ? check_image(w, c) : r;
}

int webhook_guard(struct webhook_work *w, bool is_ours)
{
	int r = 0;
	for (size_t i = 0; r >= 0 && i < w->containers; i++)
		if (w->container[i].is_ephemeral == w->is_ephemeral)
			r = guard_container(w, &w->container[i], is_ours);
	if (r < 0 || w->is_ephemeral || !(is_ours || w->terms->guards_others))
		return r;
	r = guard_namespaces(w);
	return r >= 0 ? webhook_guard_mounts(w) : r;
}
