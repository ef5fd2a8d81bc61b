/*
 * The kubelet's messages to a DRA driver, in bytes and in plain data. What is made belongs to the caller; pure but for memory.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/kubelet/devices/dra_key.h"
#include "net/grpc_server.h"

#define DRA_MOST_CLAIMS 256 /* of one call: a pod has a few */

/* Of a prepare or unprepare call; dra_request_free() afterwards, always. */
struct dra_request {
	void *unpacked;
	size_t count;
	struct dra_name *name;
};
/*
 * -EPROTO: no such message; -E2BIG: too many claims; -EINVAL: a name that can't be one: then it may stand neither in a path of
 * the API server nor in one of a file. -ENOMEM.
 */
int dra_request_read(const uint8_t *data, size_t size, struct dra_request *ret);
void dra_request_free(struct dra_request *request);

/* Of NotifyRegistrationStatus. *ret_error: owned, NULL where it was registered. -EPROTO; -ENOMEM. */
int dra_status_read(const uint8_t *data, size_t size, char **ret_error);

struct dra_prepared_device {
	const char *pool, *device;
	char request[64]; /* of the claim: a DNS label */
};

/* What became of one claim. */
struct dra_outcome {
	const char *uid;
	const char *error; /* NULL: all went well, and of an unprepare call nothing else is told */
	const char *cdi_id;
	const struct dra_prepared_device *device;
	size_t count;
};

/* Answers; NULL: no memory. */
struct grpc_message *dra_message_info(void);
struct grpc_message *dra_message_prepared(const struct dra_outcome *outcome, size_t count);
struct grpc_message *dra_message_unprepared(const struct dra_outcome *outcome, size_t count);
