/* What is changed from the keyboard: a tenant is paused, resumed, or gets another quota. Pure. */
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
	char was[32]; /* the value that is changed, as people read it */
	union {
		uint64_t bytes;
		double pct;
		int64_t number;
	} to;
};

/* Of a share, as it is. */
void change_begin(enum change_kind kind, const struct snapshot *snapshot, size_t share,
		  struct change *ret_change);

/* Has it a value that must be typed? */
bool change_wants_value(const struct change *change);

/* "memory of a on GPU 0 (now 4.0 GiB), such as 6GiB": what is to be typed. */
void change_ask(const struct change *change, char ret[CHANGE_TEXT_MAX]);

/* Reads what was typed; -EINVAL and -ERANGE say what would be right. */
int change_read(struct change *change, const char *text, struct error *err);

/* "set memory of a on GPU 0 to 6.0 GiB (now 4.0 GiB)": what would be done. */
void change_describe(const struct change *change, char ret[CHANGE_TEXT_MAX]);

/* The daemon's operation and its body; NULL when out of memory. The caller owns the body. */
json_t *change_request(const struct change *change, const char **ret_op);
