#include "base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *log_program = "allot";
static enum log_level log_level_max = LOG_LEVEL_INFO;
static bool log_to_journal;

/* True when stderr is the stream that systemd connected to the journal: JOURNAL_STREAM=dev:inode. */
static bool stderr_is_journal(void)
{
	const char *value = getenv("JOURNAL_STREAM");
	uintmax_t device, inode;
	struct stat st;
	return value && sscanf(value, "%ju:%ju", &device, &inode) == 2 &&
	       fstat(STDERR_FILENO, &st) == 0 && st.st_dev == device && st.st_ino == inode;
}

void log_init(const char *program)
{
	log_program = program;
	log_to_journal = stderr_is_journal();
}

void log_set_level(enum log_level level)
{
	log_level_max = level;
}

enum log_level log_get_level(void)
{
	return log_level_max;
}

void log_write(enum log_level level, const char *format, ...)
{
	if (level > log_level_max)
		return;

	int saved = errno;
	char line[1024];
	int n = log_to_journal ? snprintf(line, sizeof(line), "<%d>", (int)level)
			       : snprintf(line, sizeof(line), "%s: ", log_program);
	va_list ap;
	va_start(ap, format);
	int m = vsnprintf(line + n, sizeof(line) - (size_t)n, format, ap);
	va_end(ap);
	size_t length = (size_t)n + (m > 0 ? (size_t)m : 0);
	if (length > sizeof(line) - 2)
		length = sizeof(line) - 2;
	line[length++] = '\n';
	/* A log that can't be written has nowhere to say so. */
	ssize_t written = write(STDERR_FILENO, line, length);
	(void)written;
	errno = saved;
}
