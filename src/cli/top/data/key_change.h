/* A change by keys: pauses or resumes a tenant, or changes its quota, share or priority. No I/O and no clock. */
#pragma once

#include <jansson.h>

#include "base/error.h"
#include "cli/top/data/snapshot.h"

#define CHANGE_TEXT_MAX 256

enum change_kind {
	CHANGE_PAUSE,
	CHANGE_SWAP_OUT,
	CHANGE_RESUME,
	CHANGE_MEMORY,
	CHANGE_CORES,
	CHANGE_CORES_LIMIT,
	CHANGE_PRIORITY,
};

struct change {
	enum change_kind kind;
	char id[SNAPSHOT_ID_MAX];
	char name[SNAPSHOT_NAME_MAX];
	int card;
	char was[32]; /* the value before, as text: "4.0 GiB", "30", "none" */
	union {
		uint64_t bytes;
		double pct;
		int64_t number;
	} to;
};

/* The change is to the tenant and GPU of snapshot->shares[share]. Stores the present value in ret_change->was. */
void change_begin(enum change_kind kind, const struct snapshot *snapshot, size_t share,
		  struct change *ret_change);

bool change_wants_value(const struct change *change);

/* Writes the prompt for the value: "memory of a on GPU 0 is 4.0 GiB; write for example 6GiB". */
void change_ask(const struct change *change, char ret[CHANGE_TEXT_MAX]);

/* Reads the typed value. On -EINVAL and -ERANGE, err says which values are valid. */
int change_read(struct change *change, const char *text, struct error *err);

/* Writes what the change would do: "set memory of a on GPU 0 to 6.0 GiB, now 4.0 GiB". */
void change_describe(const struct change *change, char ret[CHANGE_TEXT_MAX]);

/* Returns the body of the request to the daemon, owned by the caller; NULL if out of memory. *ret_op: its operation. */
json_t *change_request(const struct change *change, const char **ret_op);
