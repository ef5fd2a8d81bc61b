#include "base/audit/audit_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "base/cleanup.h"
#include "base/log.h"

static void log_failure(struct audit_file *file, int code, const char *what)
{
	if (!file->is_failing)
		log_error("audit_log: %s: %s: events are lost until the file can be written (metric "
			  "%s counts them)",
			  file->path, what ? what : strerror(code), file->counter);
	file->is_failing = true;
}

static int open_file(struct audit_file *file)
{
	struct stat st;
	/* Do not block: the path may be a pipe without a reader. */
	cleanup_fd int fd = open(
		file->path,
		O_RDWR | O_APPEND | O_CREAT | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0600);
	char last = '\n';
	if (fd < 0 || fstat(fd, &st) < 0) {
		int code = errno;
		log_failure(file, code,
			    code == ELOOP
				    ? "is a symbolic link: set audit_log to the path of the file itself"
				    : NULL);
		return -code;
	}
	if (!S_ISREG(st.st_mode)) {
		log_failure(file, EINVAL,
			    "is not a regular file: set audit_log to the path of a file");
		return -EINVAL;
	}
	/* The last line lacks its newline if the previous daemon was killed, or the disk was full. */
	if (st.st_size > 0 && pread(fd, &last, 1, st.st_size - 1) != 1)
		last = '\n';
	file->is_torn = last != '\n';
	file->fd = steal_fd(&fd);
	return 0;
}

void audit_file_open(struct audit_file *file, const char *path, const char *counter)
{
	*file = (struct audit_file){ .path = path, .counter = counter, .fd = -1 };
	open_file(file);
}

void audit_file_close(struct audit_file *file)
{
	close_fd(&file->fd);
}

void audit_file_reopen(struct audit_file *file)
{
	close_fd(&file->fd);
	open_file(file);
}

static int append(struct audit_file *file, const char *line)
{
	size_t length = strlen(line), begin = file->is_torn ? 1 : 0;
	struct iovec parts[] = {
		{ (char *)"\n", begin },
		{ (char *)line, length },
		{ (char *)"\n", 1 },
	};
	ssize_t n;
	if (file->fd < 0) {
		int r = open_file(file);
		if (r < 0)
			return r;
		parts[0].iov_len = begin = file->is_torn ? 1 : 0;
	}
	do
		n = writev(file->fd, parts, 3);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if ((size_t)n == begin + length + 1) {
		file->is_torn = false;
		return 0;
	}
	/* The disk became full. If a part of the line was written, the next line begins with a newline. */
	file->is_torn = (size_t)n > begin || (begin && n == 0);
	return -ENOSPC;
}

int audit_file_append(struct audit_file *file, const char *line)
{
	int r = line ? append(file, line) : -ENOMEM;
	if (r < 0) {
		log_failure(file, -r, NULL);
		file->lost++;
		file->unreported++;
		return r;
	}
	if (file->is_failing)
		log_info("audit_log: %s: can be written again", file->path);
	file->is_failing = false;
	file->lines++;
	return 0;
}
