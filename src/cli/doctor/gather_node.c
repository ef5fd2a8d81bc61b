#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "client/client.h"
#include "cli/doctor/gather.h"

#define CGROUPS "/sys/fs/cgroup"

struct freezers {
	struct doctor *d;
	struct facts_cgroup *cgroup;
};

/* Checks the first cgroup with a freezer file, and ends the search: the files of all cgroups have the same owner. */
static bool find_freezer(void *data, const char *name)
{
	struct freezers *all = data;
	char path[PATH_MAX], at[PATH_MAX];

	snprintf(path, sizeof(path), CGROUPS "/%s/cgroup.freeze", name);
	if (!host_has(&all->d->host, path))
		snprintf(path, sizeof(path), CGROUPS "/freezer/%s/freezer.state", name);
	if (!host_has(&all->d->host, path))
		return true;
	host_path(&all->d->host, path, at, sizeof(at));
	all->cgroup->may_write = access(at, W_OK) == 0 ? FACT_YES : FACT_NO;
	return false;
}

void gather_cgroup(struct doctor *d, struct facts *facts)
{
	struct facts_cgroup *c = &facts->cgroup;
	struct freezers all = { d, c };
	struct statvfs fs;
	char at[PATH_MAX];

	c->has_any = host_has(&d->host, CGROUPS "/cgroup.controllers") ||
		     host_has(&d->host, CGROUPS "/freezer");
	if (!c->has_any || !host_is_local(&d->host))
		return;
	host_path(&d->host, CGROUPS, at, sizeof(at));
	c->is_read_only = statvfs(at, &fs) == 0 && (fs.f_flag & ST_RDONLY);
	if (!c->is_read_only)
		host_each(&d->host,
			  host_has(&d->host, CGROUPS "/freezer") ? CGROUPS "/freezer" : CGROUPS,
			  find_freezer, &all);
}

struct sockets {
	struct doctor *d;
	const char *directory;
	struct facts_kubelet *kubelet;
};

static bool find_own_socket(void *data, const char *name)
{
	struct sockets *s = data;
	const char *dot = strrchr(name, '.');
	char path[PATH_MAX];

	if (strncmp(name, "allot-", strlen("allot-")) != 0 || !dot || strcmp(dot, ".sock") != 0)
		return true;
	snprintf(path, sizeof(path), "%s/%s", s->directory, name);
	s->kubelet->has_our_socket = true;
	s->kubelet->we_answer = gather_listens(&s->d->host, path, SOCK_STREAM);
	return s->kubelet->we_answer != FACT_YES;
}

/* FACT_YES may be out of date: the checkpoint survives a restart of the kubelet, but plugins must register again. */
static enum fact registered(const struct host *host, const char *directory, const char *resource)
{
	char path[PATH_MAX];
	size_t size;

	snprintf(path, sizeof(path), "%s/kubelet_internal_checkpoint", directory);
	cleanup_free char *text = host_read_all(host, path, &size);
	cleanup_json json_t *json = text ? json_loadb(text, size, 0, NULL) : NULL;
	const json_t *list = json_object_get(json_object_get(json, "Data"), "RegisteredDevices");
	if (!json_is_object(list))
		return FACT_UNKNOWN;
	return json_array_size(json_object_get(list, resource)) > 0 ? FACT_YES : FACT_NO;
}

void gather_kubelet(struct doctor *d, struct facts *facts)
{
	struct facts_kubelet *k = &facts->kubelet;
	char directory[FACT_TEXT_MAX], text[FACT_TEXT_MAX], path[PATH_MAX];

	k->is_there = host_has(&d->host, "/var/lib/kubelet");
	if (!k->is_there)
		return;
	gather_setting(&d->host, ALLOTD_CONF, "kube_plugin_dir", "/var/lib/kubelet/device-plugins",
		       directory);
	gather_setting(&d->host, ALLOTD_CONF, "kube_resource", "nvidia.com/gpu", text);
	snprintf(k->resource, sizeof(k->resource), "%.*s", FACT_NAME_MAX - 1, text);
	gather_setting(&d->host, ALLOTD_CONF, "kube_plugin", "off", text);
	k->plugin_wanted = !strcmp(text, "on");
	snprintf(path, sizeof(path), "%s/kubelet.sock", directory);
	if (host_has(&d->host, path))
		k->answers = gather_listens(&d->host, path, SOCK_STREAM);
	struct sockets s = { d, directory, k };
	host_each(&d->host, directory, find_own_socket, &s);
	gather_setting(&d->host, ALLOTD_CONF, "kube_vocabulary", "slices", text);
	if (!strcmp(text, "gpu-manager")) {
		gather_setting(&d->host, ALLOTD_CONF, "kube_core_resource",
			       "tencent.com/vcuda-core", text);
		snprintf(k->resource, sizeof(k->resource), "%.*s", FACT_NAME_MAX - 1, text);
	}
	k->registered = registered(&d->host, directory, k->resource);
	if (host_is_local(&d->host))
		gather_program_version("kubelet", k->version);
}

static bool has_one_of(const struct host *host, const char *const *paths)
{
	for (; *paths; paths++)
		if (host_has(host, *paths))
			return true;
	return false;
}

static enum fact toml_switch(const struct host *host, const char *file, const char *key)
{
	char value[FACT_TEXT_MAX];

	if (!gather_setting(host, file, key, "", value))
		return FACT_UNKNOWN;
	return !strcmp(value, "true") ? FACT_YES : FACT_NO;
}

static enum fact docker_switch(const struct host *host)
{
	size_t size;
	cleanup_free char *text = host_read_all(host, "/etc/docker/daemon.json", &size);
	cleanup_json json_t *json = text ? json_loadb(text, size, 0, NULL) : NULL;
	const json_t *cdi = json_object_get(json_object_get(json, "features"), "cdi");

	return !json_is_boolean(cdi) ? FACT_UNKNOWN : json_is_true(cdi) ? FACT_YES : FACT_NO;
}

void gather_runtimes(struct doctor *d, struct facts *facts)
{
	static const struct {
		const char *program;
		const char *const there[5];
	} rows[RUNTIMES] = {
		[RUNTIME_CONTAINERD] = { "containerd",
					 { "/run/containerd/containerd.sock", "/usr/bin/containerd",
					   "/usr/local/bin/containerd", NULL } },
		[RUNTIME_CRIO] = { "crio", { "/run/crio/crio.sock", "/usr/bin/crio", NULL } },
		[RUNTIME_DOCKER] = { "dockerd", { "/run/docker.sock", "/usr/bin/dockerd", NULL } },
		[RUNTIME_PODMAN] = { "podman", { "/usr/bin/podman", "/usr/local/bin/podman", NULL } },
	};

	for (unsigned i = 0; i < RUNTIMES; i++) {
		struct facts_runtime *r = &facts->runtime[i];
		r->is_there = has_one_of(&d->host, rows[i].there);
		if (r->is_there && host_is_local(&d->host))
			gather_program_version(rows[i].program, r->version);
	}
	facts->runtime[RUNTIME_CONTAINERD].says_cdi = toml_switch(
		&d->host, "/etc/containerd/config.toml", "enable_cdi");
	facts->runtime[RUNTIME_DOCKER].says_cdi = docker_switch(&d->host);
}
