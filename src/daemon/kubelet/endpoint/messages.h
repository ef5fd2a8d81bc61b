/*
 * The kubelet's messages, in bytes and in plain data. What is made belongs to the caller; pure but for memory.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/containers/claims/injection.h"
#include "daemon/kubelet/devices/slices.h"
#include "daemon/kubelet/devices/units.h"
#include "net/grpc_server.h"

struct plugin_options {
	bool has_pre_start, has_preference;
};

/* The request of a registration, free(); NULL: no memory. */
uint8_t *message_register(const char *endpoint, const char *resource,
			  const struct plugin_options *options, size_t *ret_size);

/* Answers; NULL: no memory. */
struct grpc_message *message_options(const struct plugin_options *options);
struct grpc_message *message_empty(void);
/* All slices of every card, healthy or not as their card. */
struct grpc_message *message_devices(const struct slices *slices,
				     const bool is_healthy[SLICES_MAX_CARDS]);
/* The same of all units of memory. */
struct grpc_message *message_units(const struct units *units,
				   const bool is_healthy[SLICES_MAX_CARDS]);
/* One container's slices each. */
struct grpc_message *message_preferred(const struct slices *slices, const struct slice_set *sets,
				       size_t count);
struct grpc_message *message_allocated(const struct injection *injections, size_t count);

/*
 * A request of several containers; ids are the kubelet's texts. message_request_free() afterwards, always. -EPROTO:
 * no such message; -E2BIG: more names than `most_ids`.
 */
struct message_request {
	void *unpacked;
	void (*free)(void *unpacked);
	size_t count; /* of containers */
	struct message_container {
		char **ids; /* wanted; for a preference, those that are available */
		size_t count;
		char **must; /* of a preference */
		size_t must_count;
		int32_t size;
	} * container;
};
int message_read_preferred(const uint8_t *data, size_t size, size_t most_ids,
			   struct message_request *ret);
int message_read_allocate(const uint8_t *data, size_t size, size_t most_ids,
			  struct message_request *ret);
int message_read_pre_start(const uint8_t *data, size_t size, size_t most_ids,
			   struct message_request *ret);
void message_request_free(struct message_request *request);
