/*
 * A JSON file that is replaced as a whole: a new file is renamed over the old one, so a crash or a full disk never leaves a
 * partly written file. Thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "daemon/util/json.h"

/*
 * Writes the file. `flags` are jansson's, for the layout. With `sync`, returns only when the text is on the disk. If it fails
 * (-errno), the old file stays. Returns -EFBIG if the text exceeds most_bytes.
 */
int state_file_write(const char *path, const json_t *json, size_t flags, size_t most_bytes,
		     bool sync, struct error *err);
/*
 * Reads the file. The caller owns *ret. Returns -ENOENT if there is no file, -EFBIG if it exceeds most_bytes, -EINVAL if it
 * is not JSON or not a plain file.
 */
int state_file_read(const char *path, size_t most_bytes, json_t **ret, struct error *err);
/* Renames the file to "<path>.bad", in place of an earlier file of that name. Returns 0 or -errno. */
int state_file_set_aside(const char *path);
