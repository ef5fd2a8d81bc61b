/*
 * A state file in JSON. It is written as a new file and renamed over the old one. So whatever
 * happens (a reader meanwhile, a full disk, a crash), the file is either the old or the new one,
 * complete. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "daemon/util/json.h"

/*
 * Writes the file. `flags`: jansson's flags for the layout. `sync`: also waits for the disk. On
 * -errno the old file stays. Returns -EFBIG if the text exceeds most_bytes, since state_file_read()
 * would not accept it.
 */
int state_file_write(const char *path, const json_t *json, size_t flags, size_t most_bytes,
		     bool sync, struct error *err);
/*
 * Reads the file. The caller owns *ret. Returns -ENOENT if there is none, -EFBIG if it exceeds
 * most_bytes, -EINVAL if it is not JSON or not a plain file.
 */
int state_file_read(const char *path, size_t most_bytes, json_t **ret, struct error *err);
/* Renames an invalid file to "<path>.bad", replacing an older one. Returns 0 or -errno. */
int state_file_set_aside(const char *path);
