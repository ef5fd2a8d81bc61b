#include "library/memory/fd_tag.h"

#include <fcntl.h>
#include <string.h>

#include "library/sys/sys.h"

#ifndef F_OFD_SETLK
#define F_OFD_SETLK 37
#endif

/* The key is the first offset of the lock's range. With 61 bits, the range's end, key + pages, also fits in an off_t. */
#define KEY_BITS 61

uint64_t fd_tag_new_key(void)
{
	static _Atomic uint64_t drawn;
	uint64_t key = 0;
	int saved = errno;

	/* getrandom fails only if the kernel is older than 3.17, or if a seccomp filter forbids it. */
	if (syscall(SYS_getrandom, &key, sizeof(key), 1) != (long)sizeof(key))
		key = (sys_now_ns() << 20) ^ (uint64_t)syscall(SYS_gettid) << 40 ^
		      atomic_fetch_add(&drawn, 1);
	errno = saved;
	return (key & ((1ULL << KEY_BITS) - 1)) | 1;
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

static const char *read_number(const char *at, uint64_t *ret)
{
	*ret = 0;
	while (*at == ' ')
		at++;
	for (; *at >= '0' && *at <= '9'; at++)
		*ret = *ret * 10 + (uint64_t)(*at - '0');
	return at;
}

/* `line` begins at OFDLCK in "lock: 1: OFDLCK ADVISORY READ -1 00:06:142 START END", so START is its sixth word. */
static bool parse(const char *line, struct fd_tag *ret_tag)
{
	uint64_t start, end;

	for (int words = 0; words < 5; words++) {
		while (*line == ' ')
			line++;
		while (*line && *line != ' ' && *line != '\n')
			line++;
	}
	line = read_number(line, &start);
	read_number(line, &end);
	if (!start || end < start || start >> KEY_BITS)
		return false;
	*ret_tag = (struct fd_tag){ .key = start, .pages = end - start };
	return true;
}

bool fd_tag_get(int fd, struct fd_tag *ret_tag)
{
	char text[1024];
	int saved = errno;
	bool is_read = fd >= 0 && read_info(fd, text, sizeof(text));
	const char *lock = is_read ? strstr(text, "OFDLCK") : NULL;

	errno = saved;
	return lock && parse(lock, ret_tag);
}
