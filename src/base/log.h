/*
 * Logging of the daemon and the tools: one line each, to stderr. Under systemd (stderr is the
 * journal) each line begins with its priority, "<6>"; otherwise with the program's name.
 * Thread safe: one write() a line. Library code does not log above debug; the caller that decides
 * logs, once.
 */
#ifndef ALLOT_BASE_LOG_H
#define ALLOT_BASE_LOG_H

#include <stdint.h>

enum log_level {
	LOG_LEVEL_ERROR = 3,
	LOG_LEVEL_WARNING = 4,
	LOG_LEVEL_INFO = 6,
	LOG_LEVEL_DEBUG = 7
};

/* Call before threads exist. `program` must stay valid. */
void log_init(const char *program);
void log_set_level(enum log_level level);
enum log_level log_get_level(void);

void log_write(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * For what somebody else can bring about at will: ten lines of one place in the source at once and one a
 * second after that, for each `key` (a uid; some share). The next line tells how many were left out.
 */
#define LOG_LIMIT_KEYS 16
struct log_limit {
	struct {
		uint64_t empty_ns; /* the bucket has its lines back then */
		uint64_t left_out;
	} key[LOG_LIMIT_KEYS];
};
void log_write_limited(struct log_limit *limit, unsigned key, enum log_level level,
		       const char *format, ...) __attribute__((format(printf, 4, 5)));
#define log_info_of(key, ...) \
	do { \
		static struct log_limit limit_; \
		log_write_limited(&limit_, key, LOG_LEVEL_INFO, __VA_ARGS__); \
	} while (0)

#define log_error(...) log_write(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_write(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...) log_write(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_write(LOG_LEVEL_DEBUG, __VA_ARGS__)

#endif
