#include "base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"

#define LIMIT_LINE_NS NSEC_PER_SEC
#define LIMIT_BURST 10

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

__attribute__((format(printf, 3, 0))) static void write_line(enum log_level level, uint64_t left_out,
							     const char *format, va_list ap)
{
	int saved = errno;
	char line[1024];
	int n = log_to_journal ? snprintf(line, sizeof(line), "<%d>", (int)level)
			       : snprintf(line, sizeof(line), "%s: ", log_program);
	if (left_out)
		n += snprintf(line + n, sizeof(line) - (size_t)n,
			      "(%" PRIu64 " more like this suppressed) ", left_out);
	int m = vsnprintf(line + n, sizeof(line) - (size_t)n, format, ap);
	size_t length = (size_t)n + (m > 0 ? (size_t)m : 0);
	if (length > sizeof(line) - 2)
		length = sizeof(line) - 2;
	/* Names that others chose stand in it: none may begin a line of its own, or tell a terminal what to do. */
	line[length] = '\0';
	text_clean(line);
	line[length++] = '\n';
	/* A log that can't be written has nowhere to say so. */
	ssize_t written = write(STDERR_FILENO, line, length);
	(void)written;
	errno = saved;
}

void log_write(enum log_level level, const char *format, ...)
{
	va_list ap;
	if (level > log_level_max)
		return;
	va_start(ap, format);
	write_line(level, 0, format, ap);
	va_end(ap);
}

void log_write_limited(struct log_limit *limit, unsigned key, enum log_level level,
		       const char *format, ...)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	uint64_t now_ns = clock_now_ns(), left_out;
	va_list ap;
	if (level > log_level_max)
		return;
	pthread_mutex_lock(&lock);
	uint64_t *empty_ns = &limit->key[key % LOG_LIMIT_KEYS].empty_ns;
	uint64_t from_ns = *empty_ns > now_ns ? *empty_ns : now_ns;
	bool is_let = from_ns - now_ns + LIMIT_LINE_NS <= LIMIT_BURST * LIMIT_LINE_NS;
	left_out = limit->key[key % LOG_LIMIT_KEYS].left_out;
	limit->key[key % LOG_LIMIT_KEYS].left_out = is_let ? 0 : left_out + 1;
	if (is_let)
		*empty_ns = from_ns + LIMIT_LINE_NS;
	pthread_mutex_unlock(&lock);
	if (!is_let)
		return;
	va_start(ap, format);
	write_line(level, left_out, format, ap);
	va_end(ap);
}
