/* Between the parts of the plugin: plugin.c (socket, registration), look.c (cards and pods), calls.c (what the
 * kubelet asks). */
#ifndef ALLOT_NODE_PLUGIN_INSIDE_H
#define ALLOT_NODE_PLUGIN_INSIDE_H

#include <sys/queue.h>
#include <sys/types.h>

#include "net/grpc_server.h"
#include "node/plugin/agreement.h"
#include "node/plugin/bound.h"
#include "node/plugin/claim_holders.h"
#include "node/plugin/kubelet_dir.h"
#include "node/plugin/plugin.h"
#include "node/plugin/pod_resources.h"
#include "node/plugin/registrar.h"
#include "node/plugin/slices.h"

#define PLUGIN_PATH_MAX 108 /* of a socket, its NUL included */

TAILQ_HEAD(plugin_watchers, plugin_watcher);

struct plugin {
	struct node *node;
	struct slices slices;
	char own[PLUGIN_PATH_MAX]; /* the socket's name in its directory */
	char path[PLUGIN_PATH_MAX];
	struct grpc_server *server; /* NULL: no socket */
	dev_t device;               /* the socket's, to know it again by ... */
	ino_t inode;                /* ... this */
	struct registrar *registrar;
	struct pod_resources *pods; /* NULL: nobody is asked */
	uint64_t asked_ns;          /* it was, last; 0: never */
	struct agreement *agreement;
	struct claim_holders *holders;
	struct kubelet_dir *dir;
	bool has_kubelet;
	struct loop_source *renew_timer, *look_timer;
	struct grpc_message *list; /* what watchers were told last */
	struct bound *bound;       /* NULL: slices say how much there is of what */
	struct plugin_watchers watchers;
	unsigned watcher_count;
	uint64_t allocations, refused, allocate_ns;
};

/* calls.c: ends the call with the error. */
void plugin_refuse(struct grpc_call *call, const char *method, int error, const struct error *err);

/* plugin.c: the last one has left. */
void plugin_is_unwatched(struct plugin *plugin);

/* look.c */
int plugin_begin_looking(struct plugin *plugin, struct error *err);
/* A claim came: the kubelet is asked who has what in two seconds, not in ten. */
void plugin_ask_soon(struct plugin *plugin);
/* Also when it did not begin, or in part. */
void plugin_end_looking(struct plugin *plugin);

/* calls.c: the service's methods; how much a request may have. */
extern const struct grpc_method plugin_methods[];
extern const size_t plugin_method_count;
size_t plugin_request_most_bytes(const struct slices *slices);
/* Makes the list anew and sends it to every watcher. -ENOMEM: they keep the old one. */
int plugin_publish(struct plugin *plugin);

#endif
