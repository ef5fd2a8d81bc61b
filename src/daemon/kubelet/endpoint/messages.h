/* Converts the kubelet's messages to plain data and back. The caller owns the results. Pure, but allocates. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/containers/claims/injection.h"
#include "daemon/kubelet/devices/slices.h"
#include "daemon/kubelet/devices/units.h"
#include "net/grpc_server.h"

/*
 * Makes a registration, which the caller frees. has_preference: offers GetPreferredAllocation. PreStartContainer is never asked
 * for. Returns NULL if out of memory.
 */
uint8_t *message_register(const char *endpoint, const char *resource, bool has_preference,
			  size_t *ret_size);

/* These make answers for the kubelet, and return NULL if out of memory. */
struct grpc_message *message_options(bool has_preference);
struct grpc_message *message_empty(void);
/* List all slices, or all units of memory, of every card. Each is as healthy as its card. */
struct grpc_message *message_devices(const struct slices *slices,
				     const bool is_healthy[SLICES_MAX_CARDS]);
struct grpc_message *message_units(const struct units *units,
				   const bool is_healthy[SLICES_MAX_CARDS]);
/* Answers GetPreferredAllocation (a preference call), with a set of slices for each container. */
struct grpc_message *message_preferred(const struct slices *slices, const struct slice_set *sets,
				       size_t count);
struct grpc_message *message_allocated(const struct injection *injections, size_t count);

/* A request for several containers. The ids belong to `unpacked`, the kubelet's message. */
struct message_request {
	void *unpacked;
	size_t count;
	struct message_container {
		char **ids; /* the wanted ids; in a preference call, the available ids */
		size_t count;
		char **must; /* in a preference call: ids that must be in the answer */
		size_t must_count;
		int32_t size;
	} * container;
};
/* Read a request. Return -EPROTO if malformed, -E2BIG above `most_ids` names. Call message_request_free() in any case. */
int message_read_preferred(const uint8_t *data, size_t size, size_t most_ids,
			   struct message_request *ret);
int message_read_allocate(const uint8_t *data, size_t size, size_t most_ids,
			  struct message_request *ret);
int message_read_pre_start(const uint8_t *data, size_t size, size_t most_ids,
			   struct message_request *ret);
void message_request_free(struct message_request *request);
