#include "cli/doctor/gather.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd/unix_connect.h"
#include "cli/child_output.h"
#include "cli/doctor/version.h"
#include "cli/run/command_child.h"
#include "mirror/ld_cache.h"

#define PROGRAM_MOST_MS 5000
#define PROGRAM_TEXT_MAX 1024

static char *trim(char *text)
{
	text += strspn(text, " \t\r");
	for (size_t n = strlen(text); n > 0 && strchr(" \t\r", text[n - 1]); n--)
		text[n - 1] = '\0';
	return text;
}

bool gather_setting(const struct host *host, const char *file, const char *key,
		    const char *otherwise, char ret[FACT_TEXT_MAX])
{
	size_t size;
	bool is_there = false;
	cleanup_free char *text = host_read_all(host, file, &size);

	snprintf(ret, FACT_TEXT_MAX, "%s", otherwise);
	for (char *rest = text, *line; rest && (line = strsep(&rest, "\n"));) {
		line[strcspn(line, "#")] = '\0';
		char *equals = strchr(line, '=');
		if (!equals)
			continue;
		*equals = '\0';
		if (strcmp(trim(line), key) != 0)
			continue;
		snprintf(ret, FACT_TEXT_MAX, "%s", trim(equals + 1));
		is_there = true;
	}
	return is_there;
}

void gather_program_version(const char *program, char ret[FACT_NAME_MAX])
{
	char path[PATHS_MAX], text[PROGRAM_TEXT_MAX] = "";
	char *argv[] = { path, (char *)"--version", NULL };

	if (child_find(program, path, NULL) < 0)
		*path = '\0';
	else
		child_output(argv, true, PROGRAM_MOST_MS, text, sizeof(text), NULL, NULL);
	/* If the program can't be executed, the text begins with its path, which may contain a version. */
	bool has_failed = *path && !strncmp(text, path, strlen(path)) && text[strlen(path)] == ':';
	version_find(has_failed ? "" : text, ret);
}

enum fact gather_listens(const struct host *host, const char *path, int type)
{
	cleanup_fd int fd = host_is_local(host) ? unix_connect(path, type | SOCK_NONBLOCK)
						: -EOPNOTSUPP;

	if (fd >= 0 || fd == -EAGAIN)
		return FACT_YES;
	return fd == -ECONNREFUSED || fd == -ENOENT ? FACT_NO : FACT_UNKNOWN;
}

struct library {
	const char *name;
	char *path;
};

/* Takes the first match, as the loader does, but skips 32-bit libraries, which the loader's cache lists too. */
static int find_library(void *data, const char *name, const char *path, struct error *err)
{
	struct library *library = data;

	if (!library->path[0] && !strcmp(name, library->name) && !strstr(path, "i386") &&
	    !strstr(path, "lib32"))
		snprintf(library->path, PATH_MAX, "%s", path);
	return 0;
}

bool gather_library(const struct host *host, const char *name, char ret_path[PATH_MAX])
{
	struct library library = { name, ret_path };
	size_t size;
	cleanup_free char *cache = host_read_all(host, "/etc/ld.so.cache", &size);

	ret_path[0] = '\0';
	if (cache)
		ld_cache_each(cache, size, find_library, &library, NULL);
	return ret_path[0];
}

void gather_module_version(const struct host *host, char ret[FACT_NAME_MAX])
{
	char text[512];

	ret[0] = '\0';
	if (host_read(host, "/proc/driver/nvidia/version", text, sizeof(text)) > 0)
		version_find_word(text, ret);
}
