#include "library/memory/fd_tag.h"

#include <fcntl.h>
#include <string.h>

#include "library/sys/sys.h"

#ifndef F_OFD_SETLK
#define F_OFD_SETLK 37
#endif

uint64_t fd_tag_new_key(int device)
{
	static _Atomic uint64_t drawn;
	uint64_t key = 0;
	int saved = errno;

	/* getrandom fails only if the kernel is older than 3.17, or if a seccomp filter forbids it. */
	if (syscall(SYS_getrandom, &key, sizeof(key), 1) != (long)sizeof(key))
		key = (sys_now_ns() << 20) ^ (uint64_t)syscall(SYS_gettid) << 40 ^
		      atomic_fetch_add(&drawn, 1);
	errno = saved;
	return (key & ((1ULL << FD_TAG_DEVICE_SHIFT) - 1)) |
	       (uint64_t)device << FD_TAG_DEVICE_SHIFT | 1;
}

bool fd_tag_set(int fd, const struct fd_tag *tag)
{
	struct flock lock = {
		.l_type = F_RDLCK,
		.l_whence = SEEK_SET,
		.l_start = (off_t)tag->key,
		.l_len = (off_t)tag->pages + 1,
	};
	int saved = errno;
	bool is_set = syscall(SYS_fcntl, fd, F_OFD_SETLK, &lock) == 0;

	if (!is_set) { /* the descriptor is open only for writing */
		lock.l_type = F_WRLCK;
		is_set = syscall(SYS_fcntl, fd, F_OFD_SETLK, &lock) == 0;
	}
	errno = saved;
	return is_set;
}

static char *append_number(char *at, unsigned number)
{
	char digits[12];
	int n = 0;

	do
		digits[n++] = (char)('0' + number % 10);
	while (number /= 10);
	while (n)
		*at++ = digits[--n];
	*at = '\0';
	return at;
}

static bool read_info(int fd, char *text, size_t size)
{
	char path[48] = "/proc/self/fdinfo/";
	long n = -1;

	append_number(path + strlen(path), (unsigned)fd);
	long info = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	if (info < 0)
		return false;
	n = syscall(SYS_read, (int)info, text, size - 1);
	syscall(SYS_close, (int)info);
	if (n < 0)
		return false;
	text[n] = '\0';
	return true;
}

bool fd_tag_get(int fd, struct fd_tag *ret_tag)
{
	char text[1024];
	int saved = errno;
	bool is_read = fd >= 0 && read_info(fd, text, sizeof(text));
	const char *lock = is_read ? strstr(text, "OFDLCK") : NULL;

	errno = saved;
	return lock && fd_tag_parse(lock, ret_tag);
}

/* Returns what follows the last newline. */
static const char *visit_lines(char *text, void (*visit)(const struct fd_tag *, void *), void *data)
{
	struct fd_tag tag;

	for (char *end; (end = strchr(text, '\n')); text = end + 1) {
		*end = '\0';
		const char *lock = strstr(text, "OFDLCK");
		if (lock && fd_tag_parse(lock, &tag))
			visit(&tag, data);
	}
	return text;
}

bool fd_tag_visit_all(void (*visit)(const struct fd_tag *, void *), void *data)
{
	char text[4096];
	size_t used = 0, total = 0;
	long n;
	int saved = errno;
	long locks = syscall(SYS_openat, AT_FDCWD, "/proc/locks", O_RDONLY | O_CLOEXEC);

	if (locks < 0) {
		errno = saved;
		return false;
	}
	while ((n = syscall(SYS_read, (int)locks, text + used, sizeof(text) - 1 - used)) > 0) {
		used += (size_t)n;
		text[used] = '\0';
		const char *rest = visit_lines(text, visit, data);
		/* The next read completes the last line. A line that fills the buffer is no lock. */
		used = strlen(rest) < sizeof(text) - 1 ? strlen(rest) : 0;
		memmove(text, rest, used);
		total += (size_t)n;
		if (total > FD_TAG_LOCKS_MOST)
			break;
	}
	syscall(SYS_close, (int)locks);
	errno = saved;
	return n == 0;
}
