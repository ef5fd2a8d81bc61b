#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/settings/settings.h"
#include "scheduler/webhook/webhook_guard.h"
#include "scheduler/webhook/webhook_inside.h"

#define PATH_BYTES 4096 /* PATH_MAX: nothing can be mounted at a longer path */

/*
 * Resolves "." and "..", and removes needless slashes. Symbolic links stay, because only the node can resolve them. False if
 * the path is too long.
 */
static bool normalize(const char *path, char ret[PATH_BYTES])
{
	size_t used = 0;
	for (path += strspn(path, "/"); *path; path += strspn(path, "/")) {
		size_t length = strcspn(path, "/");
		if (length == 2 && !strncmp(path, "..", 2)) {
			while (used > 0 && ret[--used] != '/')
				;
		} else if (length > 1 || *path != '.') {
			if (used + length + 2 > PATH_BYTES)
				return false;
			ret[used++] = '/';
			memcpy(ret + used, path, length);
			used += length;
		}
		path += length;
	}
	if (!used)
		ret[used++] = '/';
	ret[used] = '\0';
	return true;
}

/* Whether `path` is `folder` or lies below it. Both must be normalized. */
static bool is_within(const char *path, const char *folder)
{
	size_t length = strlen(folder);
	return !strcmp(folder, "/") ||
	       (!strncmp(path, folder, length) && (!path[length] || path[length] == '/'));
}

/* Device files, controls of driver and kernel, and the sockets and data of allot, the kubelet and container engines. */
static const char *const host_folders[] = {
	"/dev",     "/proc",          "/sys",     "/run",
	"/var/run", "/var/lib/allot", "/etc/cdi", "/var/lib/kubelet",
};

static bool reaches_node(const char *path, const char *allowed)
{
	char plain[PATH_BYTES];
	if (!normalize(path, plain))
		return true;
	if (settings_list_matches(allowed, plain))
		return false;
	for (size_t i = 0; i < sizeof(host_folders) / sizeof(host_folders[0]); i++)
		if (is_within(plain, host_folders[i]) || is_within(host_folders[i], plain))
			return true;
	return false;
}

/* Folders of a container that have a meaning for allot's library or NVIDIA's container toolkit. */
static const struct {
	const char *path;
	bool for_others; /* also in containers without a GPU request */
} container_folders[] = {
	{ "/etc/ld.so.preload", false },
	{ "/run/allot", false },
	{ "/var/run/allot", false },
	/* A mount below this folder names a GPU, which NVIDIA's toolkit can be set up to give to the container. */
	{ "/run/nvidia-container-devices", true },
	{ "/var/run/nvidia-container-devices", true },
};

static bool bypasses(const json_t *mount, bool requests_gpu)
{
	const char *path = json_string_value(json_object_get(mount, "mountPath"));
	char plain[PATH_BYTES];
	if (!path)
		return false;
	if (!normalize(path, plain))
		return true;
	for (size_t i = 0; i < sizeof(container_folders) / sizeof(container_folders[0]); i++)
		if ((requests_gpu || container_folders[i].for_others) &&
		    is_within(plain, container_folders[i].path))
			return true;
	return false;
}

static bool is_named(const json_t *object, const char *name)
{
	const char *own = json_string_value(json_object_get(object, "name"));
	return own && name && !strcmp(own, name);
}

static void remove_mounts(struct webhook_work *w, struct webhook_container *c, const char *volume)
{
	json_t *list = json_object_get(c->object, "volumeMounts");
	char path[WEBHOOK_PATH_SIZE];
	snprintf(path, sizeof(path), "%s/volumeMounts", c->path);
	for (size_t i = json_array_size(list); i-- > 0;)
		if (is_named(json_array_get(list, i), volume))
			json_patch_remove_at(&w->patch, list, path, i);
}

static int guard_volume(struct webhook_work *w, json_t *list, size_t i)
{
	const json_t *volume = json_array_get(list, i);
	const char *name = json_string_or(volume, "name", "");
	const char *path = json_string_value(
		json_object_get(json_object_get(volume, "hostPath"), "path"));
	char what[400];
	int r = 0;
	if (!path || !reaches_node(path, w->terms->host_paths))
		return 0;
	snprintf(what, sizeof(what),
		 "volume %.63s: by the host path %.200s a pod can bypass the limits", name, path);
	if (webhook_decide(w, w->terms->mounts, what,
			   "leave it out; allot-scheduler's setting host_paths lists what is allowed",
			   &r)) {
		for (size_t k = 0; k < w->containers; k++)
			remove_mounts(w, &w->container[k], name);
		json_patch_remove_at(&w->patch, list, "/spec/volumes", i);
	}
	return r;
}

static int guard_container_mounts(struct webhook_work *w, struct webhook_container *c)
{
	json_t *list = json_object_get(c->object, "volumeMounts");
	char path[WEBHOOK_PATH_SIZE];
	int r = 0;
	snprintf(path, sizeof(path), "%s/volumeMounts", c->path);
	for (size_t i = json_array_size(list); r >= 0 && i-- > 0;) {
		const json_t *mount = json_array_get(list, i);
		char what[300];
		if (!bypasses(mount, c->requests_gpu))
			continue;
		snprintf(what, sizeof(what),
			 "container %.63s: by a mount at %.160s a pod can bypass the limits",
			 c->name, json_string_value(json_object_get(mount, "mountPath")));
		if (webhook_decide(w, w->terms->mounts, what, "remove that mount", &r))
			json_patch_remove_at(&w->patch, list, path, i);
	}
	return r;
}

int webhook_guard_mounts(struct webhook_work *w)
{
	json_t *volumes = json_object_get(json_object_get(w->pod, "spec"), "volumes");
	int r = 0;
	for (size_t i = json_array_size(volumes); r >= 0 && i-- > 0;)
		r = guard_volume(w, volumes, i);
	for (size_t i = 0; r >= 0 && i < w->containers; i++)
		r = guard_container_mounts(w, &w->container[i]);
	return r;
}
