#include "base/cdi/cdi_spec.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "base/fd/write_all.h"

int cdi_check_name(const char *name, struct error *err)
{
	int r = parse_name(name, err);

	if (r < 0)
		return r;
	if (!isalnum((unsigned char)name[strlen(name) - 1]))
		return error_set(err, EINVAL,
				 "'%s': a device's name must end with a letter or digit", name);
	return 0;
}

static bool get_two_strings(const json_t *object, const char *first, const char *second,
			    const char *ret[2])
{
	ret[0] = json_string_value(json_object_get(object, first));
	ret[1] = json_string_value(json_object_get(object, second));
	return ret[0] && ret[1];
}

static json_t *make_env(const json_t *from)
{
	cleanup_json json_t *list = json_array();
	const char *text[2];
	json_t *item;
	size_t i;

	json_array_foreach((json_t *)from, i, item)
	{
		cleanup_free char *line = NULL;

		if (!get_two_strings(item, "name", "value", text) ||
		    asprintf(&line, "%s=%s", text[0], text[1]) < 0) {
			line = NULL;
			return NULL;
		}
		json_array_append_new(list, json_string(line));
	}
	return steal_pointer(&list);
}

static json_t *make_mounts(const json_t *from)
{
	cleanup_json json_t *list = json_array();
	const char *text[2];
	json_t *item;
	size_t i;

	json_array_foreach((json_t *)from, i, item)
	{
		const char *mode = json_is_true(json_object_get(item, "read_only")) ? "ro" : "rw";

		if (!get_two_strings(item, "container_path", "host_path", text))
			return NULL;
		json_array_append_new(list, json_pack("{s:s, s:s, s:[s, s, s, s]}", "hostPath",
						      text[1], "containerPath", text[0], "options",
						      mode, "nosuid", "nodev", "bind"));
	}
	return steal_pointer(&list);
}

/* The paths must be equal: others would need the member hostPath, which CDI has only from version 0.5.0 on. */
static json_t *make_nodes(const json_t *from)
{
	cleanup_json json_t *list = json_array();
	const char *text[2];
	json_t *item;
	size_t i;

	json_array_foreach((json_t *)from, i, item)
	{
		if (!get_two_strings(item, "container_path", "host_path", text) ||
		    strcmp(text[0], text[1]) != 0)
			return NULL;
		json_array_append_new(list,
				      json_pack("{s:s, s:s}", "path", text[0], "permissions", "rw"));
	}
	return steal_pointer(&list);
}

int cdi_spec_make(const char *kind, const char *name, const json_t *injection, json_t **ret,
		  struct error *err)
{
	cleanup_json json_t *edits = json_object();
	json_t *parts[] = { make_env(json_object_get(injection, "env")),
			    make_mounts(json_object_get(injection, "mounts")),
			    make_nodes(json_object_get(injection, "device_nodes")) };
	static const char *const names[] = { "env", "mounts", "deviceNodes" };
	bool is_whole = json_is_object(injection);

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		is_whole = is_whole && parts[i];
		/* Leave out an empty list, because some readers refuse it. */
		if (json_array_size(parts[i]))
			json_object_set(edits, names[i], parts[i]);
		json_decref(parts[i]);
	}
	if (!is_whole)
		return error_set(
			err, EPROTO,
			"the daemon's reply lacks the device's variables, mounts or device nodes: use "
			"the same version of allot and allotd");
	json_t *spec = json_pack("{s:s, s:s, s:[{s:s, s:O}]}", "cdiVersion",
				 isdigit((unsigned char)*name) ? "0.5.0" : "0.3.0", "kind", kind,
				 "devices", "name", name, "containerEdits", edits);
	if (!spec)
		return error_set(err, ENOMEM, "out of memory");
	*ret = spec;
	return 0;
}

int cdi_spec_path(const char *dir, const char *name, char ret_path[PATHS_MAX], struct error *err)
{
	char leaf[PARSE_NAME_MAX + 16];

	snprintf(leaf, sizeof(leaf), "allot-%s.json", name);
	return paths_join(dir, leaf, ret_path, PATHS_MAX, err);
}

static int write_text(const char *path, const char *text, struct error *err)
{
	char fresh[PATHS_MAX + 16];

	/* Use a temporary name without ".json" at its end, so that no engine reads the unfinished file. */
	snprintf(fresh, sizeof(fresh), "%s.XXXXXX", path);
	cleanup_fd int fd = mkstemp(fresh);
	if (fd < 0)
		return error_set_errno(err, errno, "%s", path);
	int r = write_all(fd, text, strlen(text));
	if (r == 0 && (fchmod(fd, 0644) < 0 || fsync(fd) < 0 || rename(fresh, path) < 0))
		r = -errno;
	if (r < 0) {
		unlink(fresh);
		return error_set_errno(err, -r, "%s", path);
	}
	return 0;
}

int cdi_spec_write(const char *dir, const char *path, const json_t *spec, struct error *err)
{
	cleanup_free char *text = json_dumps(spec, JSON_INDENT(2));

	if (!text)
		return error_set(err, ENOMEM, "out of memory");
	if (mkdir(dir, 0755) == 0 && chmod(dir, 0755) < 0)
		return error_set_errno(err, errno, "%s", dir);
	return write_text(path, text, err);
}
