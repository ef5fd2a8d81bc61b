#include "library/sys/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "library/sys/sys.h"

bool log_is_on;
static char target_path[256]; /* empty for stderr */

void log_open(const char *target)
{
	if (!target || !*target)
		return;
	if (strcmp(target, "stderr") != 0) {
		if (strlen(target) >= sizeof(target_path))
			return;
		strcpy(target_path, target);
	}
	log_is_on = true;
}

__attribute__((format(printf, 2, 0))) static void emit(int fd, const char *format, va_list args)
{
	char line[512];
	int head = snprintf(line, sizeof(line), "allot[%d]: ", (int)getpid());
	int body = vsnprintf(line + head, sizeof(line) - (size_t)head - 1, format, args);
	size_t length = (size_t)head + (body > 0 ? (size_t)body : 0);

	if (length > sizeof(line) - 2)
		length = sizeof(line) - 2;
	line[length++] = '\n';
	ssize_t written = write(fd, line, length);
	(void)written; /* a failed write must not disturb the program */
}

void log_write(const char *format, ...)
{
	int saved = errno;
	int fd = STDERR_FILENO;
	va_list args;

	if (*target_path)
		fd = open(target_path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
	if (fd >= 0) {
		va_start(args, format);
		emit(fd, format, args);
		va_end(args);
		if (*target_path)
			close(fd);
	}
	errno = saved;
}

void log_refusal(const char *format, ...)
{
	int saved = errno;
	va_list args;

	va_start(args, format);
	emit(STDERR_FILENO, format, args);
	va_end(args);
	errno = saved;
}
