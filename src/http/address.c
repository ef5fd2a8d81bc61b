#include "http/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/parse.h"

#define BACKLOG 128
#define UNIX_PREFIX "unix:"

static int syntax_error(const char *text, struct error *err)
{
	return error_set(err, EINVAL,
			 "'%.100s': must be off, an address in numbers with a port (127.0.0.1:9400, "
			 "[::1]:9400), or unix: and a full path",
			 text);
}

static int parse_unix(const char *text, struct address *ret, struct error *err)
{
	const char *path = text + strlen(UNIX_PREFIX);
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	if (*path != '/')
		return syntax_error(text, err);
	if (strlen(path) >= sizeof(un.sun_path))
		return error_set(
			err, EINVAL,
			"'%.100s...': too long: the path of a socket may have at most %zu bytes",
			text, sizeof(un.sun_path) - 1);
	strcpy(un.sun_path, path);
	*ret = (struct address){ .length = sizeof(un) };
	memcpy(&ret->storage, &un, sizeof(un));
	return 0;
}

int address_parse(const char *text, struct address *ret, struct error *err)
{
	char host[INET6_ADDRSTRLEN + 2];
	struct sockaddr_in in = { .sin_family = AF_INET };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
	int64_t port;

	if (!strcmp(text, "off")) {
		*ret = (struct address){ 0 };
		return 0;
	}
	if (!strncmp(text, UNIX_PREFIX, strlen(UNIX_PREFIX)))
		return parse_unix(text, ret, err);
	const char *colon = strrchr(text, ':');
	size_t length = colon ? (size_t)(colon - text) : 0;
	if (!length || length >= sizeof(host))
		return syntax_error(text, err);
	if (parse_int(colon + 1, 0, 65535, &port, err) < 0)
		return syntax_error(text, err);
	memcpy(host, text, length);
	host[length] = '\0';
	if (inet_pton(AF_INET, host, &in.sin_addr) == 1) {
		in.sin_port = htons((uint16_t)port);
		*ret = (struct address){ .length = sizeof(in) };
		memcpy(&ret->storage, &in, sizeof(in));
		return 0;
	}
	if (host[0] != '[' || host[length - 1] != ']')
		return syntax_error(text, err);
	host[length - 1] = '\0';
	if (inet_pton(AF_INET6, host + 1, &in6.sin6_addr) != 1)
		return syntax_error(text, err);
	in6.sin6_port = htons((uint16_t)port);
	*ret = (struct address){ .length = sizeof(in6) };
	memcpy(&ret->storage, &in6, sizeof(in6));
	return 0;
}

static bool is_loopback(const struct in_addr *address)
{
	return ntohl(address->s_addr) >> 24 == IN_LOOPBACKNET;
}

bool address_is_local(const struct address *address)
{
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct in_addr mapped;
	switch (address->length ? address->storage.ss_family : AF_UNIX) {
	case AF_INET: memcpy(&in, &address->storage, sizeof(in)); return is_loopback(&in.sin_addr);
	case AF_INET6:
		memcpy(&in6, &address->storage, sizeof(in6));
		memcpy(&mapped, &in6.sin6_addr.s6_addr[12], sizeof(mapped));
		return IN6_IS_ADDR_LOOPBACK(&in6.sin6_addr) ||
		       (IN6_IS_ADDR_V4MAPPED(&in6.sin6_addr) && is_loopback(&mapped));
	default: return true;
	}
}

static const char *path_of(const struct address *address)
{
	const void *storage = &address->storage;
	const struct sockaddr_un *un = storage;
	return address->length && address->storage.ss_family == AF_UNIX ? un->sun_path : NULL;
}

/* Removes the socket file of a program that was killed. Fails if a program still answers there, or if the file is no socket. */
static int clear_path(const struct address *address, const char *path, struct error *err)
{
	struct stat st;
	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : error_set_errno(err, errno, "%s", path);
	if (!S_ISSOCK(st.st_mode))
		return error_set(err, EEXIST,
				 "%s: exists and is not a socket: use another path, or remove the "
				 "file",
				 path);
	cleanup_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return error_set_errno(err, errno, "socket");
	if (connect(fd, (const struct sockaddr *)&address->storage, address->length) == 0 ||
	    errno != ECONNREFUSED)
		return error_set(err, EADDRINUSE,
				 "unix:%s: another program listens there: stop it, or use another "
				 "path",
				 path);
	return unlink(path) < 0 ? error_set_errno(err, errno, "remove old %s", path) : 0;
}

static void print(const struct sockaddr_storage *storage, char text[ADDRESS_TEXT_MAX])
{
	char host[INET6_ADDRSTRLEN];
	const void *at = storage;
	const struct sockaddr_in *in = at;
	const struct sockaddr_in6 *in6 = at;
	const struct sockaddr_un *un = at;
	if (storage->ss_family == AF_UNIX)
		snprintf(text, ADDRESS_TEXT_MAX, UNIX_PREFIX "%s", un->sun_path);
	else if (storage->ss_family == AF_INET)
		snprintf(text, ADDRESS_TEXT_MAX, "%s:%u",
			 inet_ntop(AF_INET, &in->sin_addr, host, sizeof(host)), ntohs(in->sin_port));
	else
		snprintf(text, ADDRESS_TEXT_MAX, "[%s]:%u",
			 inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof(host)),
			 ntohs(in6->sin6_port));
}

int address_listen(const struct address *address, bool is_open, int *ret_fd, struct error *err)
{
	const char *path = path_of(address);
	char text[ADDRESS_TEXT_MAX];
	int one = 1;
	print(&address->storage, text);
	int r = path ? clear_path(address, path, err) : 0;
	if (r < 0)
		return r;
	cleanup_fd int fd = socket(address->storage.ss_family,
				   SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return error_set_errno(err, errno, "%s", text);
	/* Otherwise the port stays taken for a while after its program has ended. Running programs still can't share it. */
	if (!path)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (const struct sockaddr *)&address->storage, address->length) < 0)
		return error_set_errno(err, errno, "%s", text);
	if (path && chmod(path, is_open ? 0666 : 0600) < 0)
		return error_set_errno(err, errno, "chmod %s", path);
	if (listen(fd, BACKLOG) < 0)
		return error_set_errno(err, errno, "%s", text);
	*ret_fd = steal_fd(&fd);
	return 0;
}

void address_print(int fd, char text[ADDRESS_TEXT_MAX])
{
	struct sockaddr_storage storage = { 0 };
	socklen_t length = sizeof(storage);
	getsockname(fd, (struct sockaddr *)&storage, &length);
	print(&storage, text);
}

void address_unlink(const struct address *address)
{
	const char *path = path_of(address);
	if (path)
		unlink(path);
}
