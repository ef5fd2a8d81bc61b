/*
 * A Lease (coordination.k8s.io/v1) by which replicas agree on a leader: who holds it, and when that one renewed it last.
 * The times in it are of the holder's clock: whoever else reads them compares them with themselves alone. Thread safe.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/error.h"

#define LEASE_HOLDER_MAX 256
#define LEASE_TIME_MAX 40
#define LEASE_VERSION_MAX 64

struct lease {
	char holder[LEASE_HOLDER_MAX]; /* "": nobody */
	unsigned duration_s;           /* 0: not said */
	char acquired[LEASE_TIME_MAX],
		renewed[LEASE_TIME_MAX]; /* as they stand there; "": not said */
	unsigned transitions;
	char version[LEASE_VERSION_MAX];
};

/* -EINVAL with the field that can't be read. */
int lease_read(const json_t *object, struct lease *ret, struct error *err);

/*
 * What is to stand there, to be freed by free(): as a whole new Lease, or as a patch of the version that was read. NULL: no
 * memory. `holder` "" releases it: to be had by anybody at once.
 */
char *lease_body(const char *in_namespace, const char *name, const struct lease *lease);
char *lease_patch(const struct lease *lease);

/* RFC 3339 with microseconds, as MicroTime has it. `ns`: since 1970. */
void lease_format_time(uint64_t ns, char text[LEASE_TIME_MAX]);
