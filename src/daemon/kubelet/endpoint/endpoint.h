/*
 * One resource at the kubelet: its socket, its registration, and who watches its list of devices. Main thread only.
 *
 *     kubelet.sock appears -> our socket is made anew -> registrar tells the kubelet -> it calls back
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
	ENDPOINT_SHARES, /* slices of GPUs: a call for them gets the mounts and variables too */
	ENDPOINT_MEMORY, /* units of memory, beside slices of time: units.h */
};

struct endpoint {
	struct node *node;
	struct plugin *plugin; /* whose methods get the endpoint as their data */
	const struct grpc_method *methods;
	size_t method_count;
	size_t (*request_most_bytes)(const struct endpoint *e);
	void (*kubelet_came)(struct plugin *plugin); /* it has started, or was there already */
	enum endpoint_role role;
	const char *resource;        /* the setting's */
	char own[ENDPOINT_PATH_MAX]; /* the socket's name in its directory */
	struct plugin_socket socket;
	struct registrar *registrar;
	struct kubelet_dir *dir;
	bool has_kubelet, is_said; /* is_said: that the socket can't be opened */
	struct loop_source *renew_timer;
	struct grpc_message *list; /* what watchers were told last */
	struct plugin_watchers watchers;
	unsigned watcher_count;
};

/* Does the socket's path fit for that resource?. -EINVAL with what would be right. Pure. */
int endpoint_check(const char *dir, const char *resource, struct error *err);

/* Of `dir`, the kubelet's, which stays the caller's. endpoint_stop() also after an error. */
int endpoint_start(struct endpoint *e, const char *dir, struct error *err);
/* Takes the socket away. */
void endpoint_stop(struct endpoint *e);

/* The last watcher has left. */
void endpoint_is_unwatched(struct endpoint *e);
