/*
 * Logging of the daemon and the tools: one line each, to stderr. Under systemd (stderr is the
 * journal) each line begins with its priority, "<6>"; otherwise with the program's name.
 * Thread safe: one write() a line. Library code does not log above debug; the caller that decides
 * logs, once.
 */
#pragma once

#include <stdint.h>

enum log_level {
	LOG_LEVEL_ERROR = 3,
	LOG_LEVEL_WARNING = 4,
	LOG_LEVEL_INFO = 6,
	LOG_LEVEL_DEBUG = 7
};

/* For a setting; NULL behind the last. */
extern const char *const log_level_words[];
enum log_level log_level_of(unsigned word);

/* Call before threads exist. `program` must stay valid. */
void log_init(const char *program);
void log_set_level(enum log_level level);

/*
 * No line can fill the log, whoever brings it about: each place in the source has a token bucket. For what one user
 * or namespace can bring about at will, it has one for each `key` (a uid, or log_key(); some share): ten lines at
 * once and one a second after that, so that nobody hides what is said of others. Without a key it has one of as much
 * as all keys together. The next line of a bucket tells how many were left out. Debug lines are not limited.
 */
#define LOG_LIMIT_KEYS 16
#define LOG_NO_KEY UINT32_MAX
struct log_limit {
	struct {
		_Atomic uint64_t empty_ns; /* the bucket has its lines back then */
		_Atomic uint64_t left_out;
	} bucket[LOG_LIMIT_KEYS];
};
void log_write_limited(struct log_limit *limit, uint32_t key, enum log_level level,
		       const char *format, ...) __attribute__((format(printf, 4, 5)));
/* The key of a name: a namespace. */
uint32_t log_key(const char *name);

#define log_write_of(key, level, ...) \
	do { \
		static struct log_limit limit_; \
		log_write_limited(&limit_, key, level, __VA_ARGS__); \
	} while (0)
#define log_write(level, ...) log_write_of(LOG_NO_KEY, level, __VA_ARGS__)

#define log_error_of(key, ...) log_write_of(key, LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning_of(key, ...) log_write_of(key, LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info_of(key, ...) log_write_of(key, LOG_LEVEL_INFO, __VA_ARGS__)

#define log_error(...) log_write(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_write(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...) log_write(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_write(LOG_LEVEL_DEBUG, __VA_ARGS__)
