/*
 * Converts the kubelet's messages to a DRA driver between bytes and plain data. The caller owns the results. Pure, but allocates.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/kubelet/devices/dra_key.h"
#include "net/grpc_server.h"

#define DRA_MOST_CLAIMS 256 /* per call; a pod has a few */

/* A prepare or unprepare call. Always needs dra_request_free() afterwards. */
struct dra_request {
	void *unpacked;
	size_t count;
	struct dra_name *name;
};
/*
 * Reads a prepare or unprepare call. Returns -EPROTO if the message is malformed; -E2BIG if it has too many claims; -EINVAL if
 * a name is malformed, and so not safe in a path of the API server or of a file; -ENOMEM if out of memory.
 */
int dra_request_read(const uint8_t *data, size_t size, struct dra_request *ret);
void dra_request_free(struct dra_request *request);

/*
 * Reads NotifyRegistrationStatus. *ret_error is owned by the caller, and NULL if the registration succeeded. Returns -EPROTO if
 * the message is malformed; -ENOMEM if out of memory.
 */
int dra_status_read(const uint8_t *data, size_t size, char **ret_error);

struct dra_prepared_device {
	const char *pool, *device;
	char request[64]; /* name of the claim's request: a DNS label */
};

/* The result for one claim. */
struct dra_outcome {
	const char *uid;
	const char *error; /* NULL on success. The fields below are for a prepare call only. */
	const char *cdi_id;
	const struct dra_prepared_device *device;
	size_t count;
};

/* These functions make answers for the kubelet. They return NULL if out of memory. */
struct grpc_message *dra_message_info(void);
struct grpc_message *dra_message_prepared(const struct dra_outcome *outcome, size_t count);
struct grpc_message *dra_message_unprepared(const struct dra_outcome *outcome, size_t count);
