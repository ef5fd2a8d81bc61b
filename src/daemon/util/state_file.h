/*
 * A file of state as JSON. It is written whole beside the old one and renamed over it: whoever reads, and a
 * full disk, and a crash, has the old or the new. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "daemon/util/json.h"

/*
 * `flags`: jansson's, of the layout. `sync`: and waits for the disk. -errno leaves the old file in force;
 * -EFBIG: it would have more than most_bytes, which no reader takes.
 */
int state_file_write(const char *path, const json_t *json, size_t flags, size_t most_bytes,
		     bool sync, struct error *err);
/*
 * -ENOENT: there is none; -EFBIG; -EINVAL: it is not JSON, or no plain file. The caller owns *ret.
 */
int state_file_read(const char *path, size_t most_bytes, json_t **ret, struct error *err);
/* Renames what is not understood to "<path>.bad", over the last one. -errno. */
int state_file_set_aside(const char *path);
