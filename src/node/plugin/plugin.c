/* The plugin's socket and registration, its beginning and end. */
#include "node/plugin/plugin.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/paths.h"
#include "net/listen.h"
#include "node/health/health.h"
#include "node/plugin/plugin_inside.h"
#include "node/plugin/resource_name.h"
#include "node/topology.h"

#define BACKLOG 64
/* A kubelet that starts removes our socket and makes its own a moment later: then it is made anew once. */
#define RENEW_NS (200 * NSEC_PER_MSEC)
#define AGAIN_NS NSEC_PER_SEC

/* ---- settings ---- */

/* allot-gpu.sock for nvidia.com/gpu: several plugins may share the directory. */
static void name_socket(const char *resource, char own[PLUGIN_PATH_MAX])
{
	snprintf(own, PLUGIN_PATH_MAX, "allot-%s.sock", strchr(resource, '/') + 1);
}

int plugin_check(const struct config *config, struct error *err)
{
	char own[PLUGIN_PATH_MAX], path[PLUGIN_PATH_MAX];
	int r = resource_name_check(config->kube_resource, err);
	if (r < 0)
		return error_add(err, r, "kube_resource");
	r = resource_name_check(config->kube_priority_resource, err);
	if (r < 0)
		return error_add(err, r, "kube_priority_resource");
	if (config->kube_plugin_dir[0] != '/')
		return error_set(err, EINVAL, "kube_plugin_dir: '%.100s': must be a full path",
				 config->kube_plugin_dir);
	if (config->kube_pod_resources[0] != '/' && strcmp(config->kube_pod_resources, "none") != 0)
		return error_set(err, EINVAL,
				 "kube_pod_resources: '%.100s': must be a full path, or none",
				 config->kube_pod_resources);
	if (config->kube_vocabulary == KUBE_VOCABULARY_HAMI && !strcmp(config->kube_api, "off"))
		return error_set(
			err, EINVAL,
			"kube_vocabulary = hami: kube_api must not be off: what a container "
			"gets stands in its pod's annotations");
	if (config->kube_vocabulary == KUBE_VOCABULARY_HAMI &&
	    config->kube_split_count > SLICES_MAX_PER_CARD)
		return error_set(
			err, EINVAL,
			"kube_split_count: '%u': must be at most %d with kube_vocabulary = hami",
			config->kube_split_count, SLICES_MAX_PER_CARD);
	name_socket(config->kube_resource, own);
	if (paths_join(config->kube_plugin_dir, own, path, sizeof(path), NULL) < 0)
		return error_set(
			err, EINVAL,
			"kube_plugin_dir: '%.100s': must be at most %zu bytes, so that the "
			"path of the socket %s fits",
			config->kube_plugin_dir, sizeof(path) - strlen(own) - 2, own);
	return 0;
}

/* ---- the socket ---- */

static bool is_own(const struct plugin *p)
{
	struct stat st;
	return p->server && lstat(p->path, &st) == 0 && st.st_dev == p->device &&
	       st.st_ino == p->inode;
}

static void close_socket(struct plugin *p)
{
	if (is_own(p))
		unlink(p->path);
	p->server = grpc_server_free(p->server);
}

static int open_socket(struct plugin *p, struct error *err)
{
	struct stat st;
	struct grpc_service service = { .methods = plugin_methods,
					.method_count = plugin_method_count,
					.data = p,
					.limits = grpc_limits_default() };
	service.limits.message_bytes = plugin_request_most_bytes(&p->slices);
	cleanup_fd int fd = listen_bind(p->path, SOCK_STREAM, err);
	if (fd < 0)
		return fd;
	if (chmod(p->path, 0600) < 0 || lstat(p->path, &st) < 0 || listen(fd, BACKLOG) < 0)
		return error_set_errno(err, errno, "%s", p->path);
	int r = grpc_server_new(p->node->loop, fd, &service, &p->server, err);
	if (r < 0)
		return r;
	steal_fd(&fd);
	p->device = st.st_dev;
	p->inode = st.st_ino;
	return 0;
}

/* A new socket, and then the kubelet is told of it. */
static void renew(struct plugin *p)
{
	struct error err = { 0 };
	loop_disarm(p->renew_timer);
	close_socket(p);
	if (open_socket(p, &err) < 0) {
		log_warning("device plugin: %s", err.text);
		loop_arm(p->renew_timer, AGAIN_NS, 0);
		return;
	}
	/* Its streams have ended with the old one: not for want of a kubelet. */
	loop_disarm(p->renew_timer);
	registrar_want(p->registrar);
}

static void renew_due(void *data, uint32_t events)
{
	struct plugin *p = data;
	if (!p->has_kubelet)
		return;
	if (!is_own(p))
		renew(p);
	else if (!p->watcher_count)
		registrar_want(p->registrar);
}

/* A kubelet that stays asks again only when it is told again. */
void plugin_is_unwatched(struct plugin *p)
{
	if (p->has_kubelet)
		loop_arm(p->renew_timer, AGAIN_NS, 0);
}

static void directory_changed(void *data, enum kubelet_dir_event event)
{
	struct plugin *p = data;
	switch (event) {
	case KUBELET_DIR_KUBELET_CAME:
		p->has_kubelet = true;
		renew(p);
		break;
	case KUBELET_DIR_KUBELET_LEFT:
		p->has_kubelet = false;
		registrar_forget(p->registrar);
		break;
	case KUBELET_DIR_OWN_LEFT:
		if (p->has_kubelet && !is_own(p))
			loop_arm(p->renew_timer, RENEW_NS, 0);
		break;
	}
}

/* ---- life ---- */

static int prepare_slices(struct plugin *p, struct error *err)
{
	p->slices.card_count = p->node->card_count;
	p->slices.per_card = p->node->config.kube_vocabulary == KUBE_VOCABULARY_HAMI
				     ? p->node->config.kube_split_count
				     : p->node->config.kube_slices;
	for (unsigned i = 0; i < p->slices.card_count; i++) {
		p->slices.uuid[i] = p->node->card[i].info.uuid_text;
		p->slices.numa[i] = topology_numa(p->node, i);
		if (!slices_can_name(p->slices.uuid[i]))
			return error_set(err, EINVAL,
					 "GPU %u: '%s': too long a name for the kubelet", i,
					 p->slices.uuid[i]);
	}
	return plugin_publish(p) < 0 ? error_set_errno(err, ENOMEM, "device plugin") : 0;
}

static int start_parts(struct plugin *p, struct error *err)
{
	const struct config *config = &p->node->config;
	char kubelet[PLUGIN_PATH_MAX];
	struct loop *loop = p->node->loop;
	name_socket(config->kube_resource, p->own);
	int r = paths_join(config->kube_plugin_dir, p->own, p->path, sizeof(p->path), err);
	if (r >= 0)
		r = paths_join(config->kube_plugin_dir, KUBELET_SOCKET, kubelet, sizeof(kubelet),
			       err);
	if (r >= 0)
		r = prepare_slices(p, err);
	if (r >= 0 && config->kube_vocabulary == KUBE_VOCABULARY_HAMI)
		r = bound_start(p, &p->bound, err);
	if (r >= 0)
		r = registrar_start(kubelet, p->own, config->kube_resource, &p->registrar, err);
	if (r < 0)
		return r;
	r = loop_add_timer(loop, renew_due, p, &p->renew_timer);
	if (r < 0)
		return error_set_errno(err, -r, "timer");
	r = plugin_begin_looking(p, err);
	if (r < 0)
		return r;
	return kubelet_dir_watch(loop, config->kube_plugin_dir, p->own, directory_changed, p,
				 &p->dir, err);
}

int plugin_start(struct node *node, struct plugin **ret, struct error *err)
{
	if (!node->config.is_kube_plugin)
		return 0;
	if (node->is_private)
		return error_set(
			err, EPERM,
			"kube_plugin = on: must be off in a daemon of one user: the kubelet's "
			"plugin is the system daemon's, started by root without --private");
	int r = plugin_check(&node->config, err);
	if (r < 0)
		return r;
	struct plugin *p = calloc(1, sizeof(*p));
	if (!p)
		return error_set_errno(err, ENOMEM, "device plugin");
	p->node = node;
	TAILQ_INIT(&p->watchers);
	r = start_parts(p, err);
	if (r < 0) {
		plugin_stop(p);
		return error_add(err, r, "device plugin");
	}
	*ret = p;
	return 0;
}

struct plugin *plugin_stop(struct plugin *p)
{
	if (!p)
		return NULL;
	plugin_end_looking(p);
	p->registrar = registrar_stop(p->registrar);
	p->dir = kubelet_dir_free(p->dir);
	p->has_kubelet = false;
	close_socket(p);
	p->bound = bound_stop(p->bound);
	loop_remove(p->renew_timer);
	grpc_message_unref(p->list);
	free(p);
	return NULL;
}

bool plugin_claim_holder(const struct plugin *p, const struct claim *claim, struct claim_holder *ret)
{
	return p && claim_holders_find(p->holders, claim, ret);
}

bool plugin_figures(struct plugin *p, struct plugin_figures *ret)
{
	if (!p)
		return false;
	struct registrar_figures f = registrar_figures(p->registrar);
	struct agreement_figures a = agreement_figures(p->agreement);
	*ret = (struct plugin_figures){ .is_registered = f.is_registered,
					.registrations = f.registrations,
					.register_failures = f.failures,
					.register_ns = f.last_ns,
					.watchers = p->watcher_count,
					.slices = (uint64_t)p->slices.card_count * p->slices.per_card,
					.disagreements = a.now,
					.disagreements_ever = a.ever,
					.allocations = p->allocations,
					.refused = p->refused,
					.allocate_ns = p->allocate_ns };
	for (unsigned i = 0; i < p->slices.card_count; i++)
		if (health_takes_tenants(&p->node->card[i]))
			ret->healthy_slices += p->slices.per_card;
	return true;
}
