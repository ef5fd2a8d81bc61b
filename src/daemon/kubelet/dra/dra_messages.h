/* Converts between plain data and the kubelet's messages to a DRA driver. The caller owns the results. Pure, but allocates. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/kubelet/devices/dra_key.h"
#include "net/grpc_server.h"

#define DRA_MOST_CLAIMS 256 /* most claims in one call of the kubelet; a pod has a few */

/* A prepare or unprepare call. Call dra_request_free() even after dra_request_read() failed. */
struct dra_request {
	void *unpacked;
	size_t count;
	struct dra_name *name;
};
/* Returns -EPROTO if malformed, -E2BIG for too many claims, -EINVAL for a name that is unsafe in a path, or -ENOMEM. */
int dra_request_read(const uint8_t *data, size_t size, struct dra_request *ret);
void dra_request_free(struct dra_request *request);

/* The caller frees *ret_error; NULL: the kubelet has registered the driver. Returns -EPROTO if malformed, or -ENOMEM. */
int dra_status_read(const uint8_t *data, size_t size, char **ret_error);

struct dra_prepared_device {
	const char *pool, *device;
	char request[64]; /* name of the claim's request: a DNS label */
};

struct dra_outcome {
	const char *uid;
	const char *error; /* NULL: success. The fields below are for a prepare call. */
	const char *cdi_id;
	const struct dra_prepared_device *device;
	size_t count;
};

/* These make answers for the kubelet, and return NULL if out of memory. */
struct grpc_message *dra_message_info(void);
struct grpc_message *dra_message_prepared(const struct dra_outcome *outcome, size_t count);
struct grpc_message *dra_message_unprepared(const struct dra_outcome *outcome, size_t count);
