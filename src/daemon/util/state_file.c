#include "daemon/util/state_file.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "daemon/util/whole_file.h"

int state_file_write(const char *path, const json_t *json, size_t flags, size_t most_bytes,
		     bool sync, struct error *err)
{
	cleanup_free char *text = json ? json_dumps(json, flags) : NULL;
	if (!text)
		return error_set_errno(err, ENOMEM, "can't write %s", path);
	size_t size = strlen(text);
	if (size > most_bytes)
		return error_set(
			err, EFBIG,
			"can't write %s: its text has %zu bytes, but allotd's limit for this file "
			"is %zu: please report this bug of allotd",
			path, size, most_bytes);
	int r = whole_file_write(path, text, size, sync);
	return r < 0 ? error_set_errno(err, -r, "can't write %s", path) : 0;
}

int state_file_read(const char *path, size_t most_bytes, json_t **ret, struct error *err)
{
	json_error_t where;
	cleanup_free char *text = NULL;
	size_t size;
	/* Read the file before parsing it, because json_loadfd() would read it byte by byte. */
	int r = whole_file_read(path, most_bytes, &text, &size);
	if (r == -EINVAL)
		return error_set(err, EINVAL, "%s: not a plain file", path);
	if (r == -EFBIG)
		return error_set(err, EFBIG, "%s: has more than %zu bytes", path, most_bytes);
	if (r < 0)
		return error_set_errno(err, -r, "%s", path);
	json_t *json = json_loadb(text, size, JSON_REJECT_DUPLICATES, &where);
	if (!json)
		return error_set(err, EINVAL, "%s:%d: %s", path, where.line, where.text);
	*ret = json;
	return 0;
}

int state_file_set_aside(const char *path)
{
	char bad[PATH_MAX];
	snprintf(bad, sizeof(bad), "%s.bad", path);
	return rename(path, bad) < 0 ? -errno : 0;
}
