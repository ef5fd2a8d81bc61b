/* Shared by the parts of the plugin: plugin.c (start and stop), endpoint.c (socket, registration), sync_loop.c (cards and pods),
 * calls.c (the kubelet's calls). */
#pragma once

#include "daemon/kubelet/devices/pod_resources.h"
#include "daemon/kubelet/devices/slices.h"
#include "daemon/kubelet/devices/units.h"
#include "daemon/kubelet/endpoint/endpoint.h"
#include "net/grpc_server.h"

struct reconciler;
struct annotated;
struct claim_holders;
struct error;
struct vcuda;

#define PLUGIN_MAX_ENDPOINTS 2

struct plugin {
	struct node *node;
	struct slices slices; /* of the first endpoint */
	struct units units;   /* of the second */
	struct endpoint endpoint[PLUGIN_MAX_ENDPOINTS];
	unsigned endpoint_count;
	struct pod_resources *pods; /* who holds slices; NULL: nobody is asked */
	uint64_t asked_ns;          /* it was, last; 0: never */
	struct reconciler *reconciler;
	struct claim_holders *holders;
	struct loop_source *sync_timer;
	struct annotated *annotated; /* NULL: slices say how much there is of what */
	struct vcuda *vcuda; /* NULL unless the vocabulary is gpu-manager's; then annotated is set as well */
	uint64_t allocations, refused, allocate_ns;
};

/* calls.c: ends the call with the error. */
void plugin_refuse(struct grpc_call *call, const char *method, int error, const struct error *err);

/* sync_loop.c */
int plugin_begin_sync(struct plugin *plugin, struct error *err);
/* A claim came: the kubelet is asked who has what in two seconds, not in ten. */
void plugin_ask_soon(struct plugin *plugin);
/* Also when it did not begin, or in part. */
void plugin_end_sync(struct plugin *plugin);
/* Asks at once what pods hold, as somebody waits for it. */
void plugin_ask_pods(struct plugin *plugin);

/* calls.c: the service's methods; how much a request may have. */
extern const struct grpc_method plugin_methods[];
extern const size_t plugin_method_count;
size_t plugin_request_most_bytes(const struct endpoint *endpoint);
/* Makes the lists anew and sends them to every watcher. -ENOMEM: some keep the old one. */
int plugin_publish(struct plugin *plugin);
