#include "daemon/kubelet/endpoint/endpoint.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/paths.h"
#include "daemon/state/node/node.h"

/*
 * Delay from the removal of our socket to its renewal. A starting kubelet removes our socket, then creates its own, which also
 * makes us renew ours. The delay avoids a second renewal.
 */
#define RENEW_NS (200 * NSEC_PER_MSEC)
#define AGAIN_NS NSEC_PER_SEC

/* nvidia.com/gpu becomes allot-gpu.sock: several plugins may share the directory. */
static void name_socket(const char *resource, char own[ENDPOINT_PATH_MAX])
{
	snprintf(own, ENDPOINT_PATH_MAX, "allot-%s.sock", strchr(resource, '/') + 1);
}

int endpoint_check(const char *dir, const char *resource, struct error *err)
{
	char own[ENDPOINT_PATH_MAX], path[ENDPOINT_PATH_MAX];
	name_socket(resource, own);
	if (paths_join(dir, own, path, sizeof(path), NULL) < 0)
		return error_set(err, EINVAL,
				 "kube_plugin_dir: '%.100s': must be at most %zu bytes, so that the "
				 "path of the socket %s fits",
				 dir, sizeof(path) - strlen(own) - 2, own);
	return 0;
}

static int open_socket(struct endpoint *e, struct error *err)
{
	struct grpc_service service = { .methods = e->methods,
					.method_count = e->method_count,
					.data = e,
					.limits = grpc_limits_default() };
	service.limits.message_bytes = e->request_most_bytes(e);
	return plugin_socket_open(&e->socket, e->node->loop, &service, err);
}

static void renew(struct endpoint *e)
{
	struct error err = { 0 };
	loop_disarm(e->renew_timer);
	plugin_socket_close(&e->socket);
	if (open_socket(e, &err) < 0) {
		log_write(e->is_failure_logged ? LOG_LEVEL_DEBUG : LOG_LEVEL_WARNING,
			  "device plugin: its socket for the kubelet can't be opened: %s; trying "
			  "again",
			  err.text);
		e->is_failure_logged = true;
		loop_arm(e->renew_timer, AGAIN_NS, 0);
		return;
	}
	e->is_failure_logged = false;
	/* Closing the old socket ended the kubelet's streams, which armed the timer. But we register right here. */
	loop_disarm(e->renew_timer);
	registrar_register(e->registrar);
}

static void renew_due(void *data, uint32_t events)
{
	struct endpoint *e = data;
	if (!e->has_kubelet)
		return;
	if (!plugin_socket_exists(&e->socket))
		renew(e);
	else if (!e->watcher_count)
		registrar_register(e->registrar);
}

/* A kubelet that still runs does not reconnect by itself, so register again. */
void endpoint_is_unwatched(struct endpoint *e)
{
	if (e->has_kubelet)
		loop_arm(e->renew_timer, AGAIN_NS, 0);
}

static void directory_changed(void *data, enum kubelet_dir_event event)
{
	struct endpoint *e = data;
	switch (event) {
	case KUBELET_DIR_KUBELET_STARTED:
		e->has_kubelet = true;
		e->kubelet_started(e->plugin);
		renew(e);
		break;
	case KUBELET_DIR_KUBELET_STOPPED:
		e->has_kubelet = false;
		registrar_reset(e->registrar);
		break;
	case KUBELET_DIR_OWN_REMOVED:
		if (e->has_kubelet && !plugin_socket_exists(&e->socket))
			loop_arm(e->renew_timer, RENEW_NS, 0);
		break;
	case KUBELET_DIR_REMOVED_OUTSIDE:
		log_error("kube_plugin_dir: %s was removed on the host, so this container's mount of "
			  "it is stale: allotd ends, and its restarted container mounts the new "
			  "directory; running tenants go on",
			  e->node->config.kube_plugin_dir);
		loop_quit(e->node->loop);
		break;
	}
}

int endpoint_start(struct endpoint *e, const char *dir, struct error *err)
{
	char kubelet[ENDPOINT_PATH_MAX];
	struct loop *loop = e->node->loop;
	name_socket(e->resource, e->own);
	int r = paths_join(dir, e->own, e->socket.path, sizeof(e->socket.path), err);
	if (r >= 0)
		r = paths_join(dir, KUBELET_SOCKET, kubelet, sizeof(kubelet), err);
	if (r >= 0)
		r = registrar_start(kubelet, e->own, e->resource, e->role == ENDPOINT_SHARES,
				    &e->registrar, err);
	if (r < 0)
		return r;
	r = loop_add_timer(loop, renew_due, e, &e->renew_timer);
	if (r < 0)
		return error_set_errno(err, -r, "can't make a timer");
	return kubelet_dir_watch(loop, dir, e->own, directory_changed, e, &e->dir, err);
}

void endpoint_stop(struct endpoint *e)
{
	e->registrar = registrar_stop(e->registrar);
	e->dir = kubelet_dir_free(e->dir);
	e->has_kubelet = false;
	plugin_socket_close(&e->socket);
	e->renew_timer = loop_remove(e->renew_timer);
	grpc_message_unref(e->list);
	e->list = NULL;
}
