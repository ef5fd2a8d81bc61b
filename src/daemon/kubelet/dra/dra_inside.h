/* Internal to the DRA driver (dra.h). */
#pragma once

#include <sys/queue.h>

#include "daemon/kubelet/dra/dra_messages.h"
#include "daemon/kubelet/endpoint/plugin_socket.h"
#include "kube/client/kube_client.h"

struct dra_need;
struct publisher;

TAILQ_HEAD(preparations, preparation);

struct dra {
	struct node *node;
	struct kube_client *client;
	const char *node_name;
	struct plugin_socket socket;
	/* the last logged failure; NULL: none was logged, or that failure is over */
	char *logged_error;
	struct loop_source *timer;     /* runs every second */
	struct preparations preparing; /* calls that wait for the API server */
	struct publisher *publisher;
	/* when the publisher last got the list of GPUs; 0: it gets the list when `timer` next runs */
	uint64_t published_ns;
	uint64_t swept_ns; /* when CDI specs without a claim were last removed */
	struct dra_need *need;
	bool is_registered;
	uint64_t prepared, refused, unprepared, prepare_ns; /* as in struct dra_figures */
};

/* prepare.c: methods of the service DRAPlugin; `data` is the struct dra */
void dra_prepare(void *data, struct grpc_call *call, const uint8_t *message, size_t size);
void dra_unprepare(void *data, struct grpc_call *call, const uint8_t *message, size_t size);
/* Drops prepare calls that wait for the API server. */
void dra_prepare_end(struct dra *dra);
