/*
 * An endpoint is one resource that we offer to the kubelet: our socket, its registration, and the streams on which the kubelet
 * watches the devices. Main thread only.
 *
 *     kubelet.sock appears -> we create our socket anew -> the registrar registers the socket -> the kubelet calls us on it
 */
#pragma once

#include <stdbool.h>
#include <sys/queue.h>

#include "daemon/kubelet/endpoint/kubelet_dir.h"
#include "daemon/kubelet/endpoint/plugin_socket.h"
#include "daemon/kubelet/endpoint/registrar.h"

#define ENDPOINT_PATH_MAX PLUGIN_SOCKET_MAX

struct node;
struct plugin;
struct plugin_watcher;
TAILQ_HEAD(plugin_watchers, plugin_watcher);

enum endpoint_role {
	/* slices of GPUs; only this endpoint's answers to Allocate have mounts and environment variables */
	ENDPOINT_SHARES,
	/* units of memory (units.h), for gpu-manager's resources; the slices of ENDPOINT_SHARES then stand for GPU time only */
	ENDPOINT_MEMORY,
};

struct endpoint {
	struct node *node;
	struct plugin *plugin;
	const struct grpc_method *methods; /* the plugin's methods; their `data` is the endpoint */
	size_t method_count;
	size_t (*request_most_bytes)(const struct endpoint *e);
	/* called when a kubelet starts, and once for a kubelet that runs already */
	void (*kubelet_started)(struct plugin *plugin);
	enum endpoint_role role;
	const char *resource;        /* name of the resource, from the settings */
	char own[ENDPOINT_PATH_MAX]; /* file name of our socket in the kubelet's directory */
	struct plugin_socket socket;
	struct registrar *registrar;
	struct kubelet_dir *dir;
	bool has_kubelet;
	bool is_failure_logged; /* a failure to open the socket was logged */
	struct loop_source *renew_timer;
	struct grpc_message *list; /* list of devices that the watchers got last */
	struct plugin_watchers watchers;
	unsigned watcher_count;
};

/* Checks the socket's path. Returns -EINVAL if it is too long; `err` then says what would be right. Pure. */
int endpoint_check(const char *dir, const char *resource, struct error *err);

/* Watches the kubelet's directory `dir`; this text must stay valid. Call endpoint_stop() also after an error. */
int endpoint_start(struct endpoint *e, const char *dir, struct error *err);
void endpoint_stop(struct endpoint *e);

/* Call when the kubelet has ended the last stream of `watchers`. Registers again a second later. */
void endpoint_is_unwatched(struct endpoint *e);
