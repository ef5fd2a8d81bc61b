/*
 * Reads and writes a Lease (coordination.k8s.io/v1), by which replicas elect a leader. The Lease's times are by the holder's
 * clock, so compare them only with each other. Thread-safe.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/error.h"

#define LEASE_HOLDER_MAX 256
#define LEASE_TIME_MAX 40
#define LEASE_VERSION_MAX 64

struct lease {
	char holder[LEASE_HOLDER_MAX];                          /* "" if none */
	unsigned duration_s;                                    /* 0 if missing */
	char acquired[LEASE_TIME_MAX], renewed[LEASE_TIME_MAX]; /* "" if missing */
	unsigned transitions;
	char version[LEASE_VERSION_MAX];
};

/* Reads a Lease. Returns -EINVAL if it is malformed; err names the field. */
int lease_read(const json_t *object, struct lease *ret, struct error *err);

/*
 * Make the JSON of a new Lease, or of a patch that applies only to lease->version. An empty `holder` releases the Lease. The
 * caller frees the text; NULL if memory runs out.
 */
char *lease_body(const char *in_namespace, const char *name, const struct lease *lease);
char *lease_patch(const struct lease *lease);

/* Writes a time (ns since 1970) as RFC 3339 with microseconds, as Kubernetes' type MicroTime requires. */
void lease_format_time(uint64_t ns, char text[LEASE_TIME_MAX]);
