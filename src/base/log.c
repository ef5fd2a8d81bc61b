#include "base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fnv.h"
#include "base/text.h"

#define LIMIT_LINE_NS NSEC_PER_SEC
#define LIMIT_BURST 10

static const char *log_program = "allot";
static enum log_level log_level_max = LOG_LEVEL_INFO;
static bool log_to_journal;

/* systemd sets JOURNAL_STREAM=dev:inode if it connected stderr to the journal. */
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

const char *const log_level_words[] = { "error", "warning", "info", "debug", NULL };

enum log_level log_level_of(unsigned word)
{
	static const enum log_level levels[] = { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO,
						 LOG_LEVEL_DEBUG };
	return levels[word];
}

void log_set_level(enum log_level level)
{
	log_level_max = level;
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
	/* The line may contain untrusted names: they must not begin a new line or control a terminal. */
	line[length] = '\0';
	text_clean(line);
	line[length++] = '\n';
	/* Ignore a failed write: there is no other place to report it. */
	ssize_t written = write(STDERR_FILENO, line, length);
	(void)written;
	errno = saved;
}

/* Takes one token from the key's bucket. Returns false if the bucket is empty. */
static bool take_token(struct log_limit *limit, uint32_t key, uint64_t *ret_left_out)
{
	uint64_t line_ns = key == LOG_NO_KEY ? LIMIT_LINE_NS / LOG_LIMIT_KEYS : LIMIT_LINE_NS;
	unsigned i = key == LOG_NO_KEY ? 0 : key % LOG_LIMIT_KEYS;
	uint64_t now_ns = clock_now_ns(), from_ns;
	uint64_t full_ns = atomic_load(&limit->bucket[i].full_ns);
	do {
		from_ns = full_ns > now_ns ? full_ns : now_ns;
		if (from_ns - now_ns + line_ns > LIMIT_BURST * LIMIT_LINE_NS) {
			atomic_fetch_add(&limit->bucket[i].left_out, 1);
			return false;
		}
	} while (!atomic_compare_exchange_weak(&limit->bucket[i].full_ns, &full_ns,
					       from_ns + line_ns));
	*ret_left_out = atomic_exchange(&limit->bucket[i].left_out, 0);
	return true;
}

void log_write_limited(struct log_limit *limit, uint32_t key, enum log_level level,
		       const char *format, ...)
{
	uint64_t left_out = 0;
	va_list ap;
	if (level > log_level_max ||
	    (level != LOG_LEVEL_DEBUG && !take_token(limit, key, &left_out)))
		return;
	va_start(ap, format);
	write_line(level, left_out, format, ap);
	va_end(ap);
}

uint32_t log_key(const char *name)
{
	uint32_t hash = fnv32(name, strlen(name));
	return hash == LOG_NO_KEY ? 0 : hash;
}
