#include "cli/doctor/host.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

#define FILE_MOST_BYTES (64 << 20)
#define LINKS_MAX 40

bool host_is_local(const struct host *host)
{
	return !host->root[0];
}

void host_path(const struct host *host, const char *path, char *ret, size_t size)
{
	snprintf(ret, size, "%s%s", host->root, path);
}

/* Writes the path by which this program can open the machine's `path`. Follows links as if the machine's root were "/". */
static void resolve_directory_and_leaf(const struct host *host, const char *path, char *ret,
				       size_t size)
{
	char resolved[PATH_MAX];

	host_resolve(host, path, resolved, sizeof(resolved));
	host_path(host, resolved, ret, size);
}

bool host_has(const struct host *host, const char *path)
{
	char at[PATH_MAX];
	struct stat st;

	resolve_directory_and_leaf(host, path, at, sizeof(at));
	return stat(at, &st) == 0;
}

bool host_lacks(const struct host *host, const char *path)
{
	return !host_has(host, path) && (errno == ENOENT || errno == ENOTDIR);
}

static int open_file(const struct host *host, const char *path)
{
	char at[PATH_MAX];

	resolve_directory_and_leaf(host, path, at, sizeof(at));
	int fd = open(at, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

static long read_up_to(int fd, char *text, size_t size)
{
	size_t n = 0;

	while (n < size) {
		ssize_t got = read(fd, text + n, size - n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		n += (size_t)got;
	}
	return (long)n;
}

long host_read(const struct host *host, const char *path, char *text, size_t size)
{
	text[0] = '\0';
	cleanup_fd int fd = open_file(host, path);
	if (fd < 0)
		return fd;
	long n = read_up_to(fd, text, size - 1);
	text[n < 0 ? 0 : n] = '\0';
	return n;
}

char *host_read_all(const struct host *host, const char *path, size_t *ret_size)
{
	struct stat st;
	cleanup_fd int fd = open_file(host, path);

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > FILE_MOST_BYTES)
		return NULL;
	char *text = malloc((size_t)st.st_size + 1);
	long n = text ? read_up_to(fd, text, (size_t)st.st_size) : -1;
	if (n < 0) {
		free(text);
		return NULL;
	}
	text[n] = '\0';
	*ret_size = (size_t)n;
	return text;
}

/* Removes ".", ".." and double slashes. */
static void normalize(char *path)
{
	char out[PATH_MAX];
	size_t n = 0;

	for (char *rest = path, *part; (part = strtok_r(rest, "/", &rest));) {
		if (!strcmp(part, "."))
			continue;
		if (!strcmp(part, "..")) {
			while (n > 0 && out[--n] != '/')
				;
			continue;
		}
		n += (size_t)snprintf(out + n, sizeof(out) - n, "/%s", part);
		if (n >= sizeof(out))
			break;
	}
	if (n == 0 || n >= sizeof(out))
		strcpy(path, "/");
	else
		memcpy(path, out, n + 1);
}

/* Replaces the first symbolic link in the path by its target. Returns false if there is none. */
static bool follow_link(const struct host *host, char path[PATH_MAX])
{
	for (char *slash = strchr(path + 1, '/');; slash = strchr(slash + 1, '/')) {
		char at[PATH_MAX], target[PATH_MAX], next[PATH_MAX];
		size_t length = slash ? (size_t)(slash - path) : strlen(path);

		if ((size_t)snprintf(at, sizeof(at), "%s%.*s", host->root, (int)length, path) >=
		    sizeof(at))
			return false;
		ssize_t n = readlink(at, target, sizeof(target) - 1);
		if (n > 0) {
			const char *rest = slash ? slash : "";
			int parent = (int)length;
			target[n] = '\0';
			while (parent > 0 && path[parent - 1] != '/')
				parent--;
			int size = target[0] == '/'
					   ? snprintf(next, sizeof(next), "%s%s", target, rest)
					   : snprintf(next, sizeof(next), "%.*s%s%s", parent, path,
						      target, rest);
			if (size < 0 || (size_t)size >= sizeof(next))
				return false;
			normalize(next);
			memcpy(path, next, strlen(next) + 1);
			return true;
		}
		if (!slash)
			return false;
	}
}

void host_resolve(const struct host *host, const char *path, char *ret, size_t size)
{
	char at[PATH_MAX];

	snprintf(at, sizeof(at), "%s", path);
	for (int i = 0; i < LINKS_MAX && at[0] == '/' && follow_link(host, at); i++)
		;
	snprintf(ret, size, "%s", at);
}

void host_each(const struct host *host, const char *directory,
	       bool (*visit)(void *data, const char *name), void *data)
{
	char at[PATH_MAX];
	struct dirent *entry;

	resolve_directory_and_leaf(host, directory, at, sizeof(at));
	cleanup_dir DIR *dir = opendir(at);
	while (dir && (entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") &&
		    !visit(data, entry->d_name))
			return;
}
