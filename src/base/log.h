/*
 * Logging of the daemon and the tools: one line per message, to stderr. If stderr is systemd's journal, each line begins with
 * its priority, like "<6>"; otherwise with the program's name. Thread safe: each line is one write(). A function that returns
 * an error does not log it, except at debug level; the caller that handles the error logs it once.
 */
#pragma once

#include <stdint.h>

enum log_level {
	LOG_LEVEL_ERROR = 3,
	LOG_LEVEL_WARNING = 4,
	LOG_LEVEL_INFO = 6,
	LOG_LEVEL_DEBUG = 7
};

/* The names of the levels, ended by NULL, for settings_row.words; log_level_of() takes an index into this list. */
extern const char *const log_level_words[];
enum log_level log_level_of(unsigned word);

/* Detects whether stderr is the journal. Call before threads exist. `program` must stay valid. */
void log_init(const char *program);
void log_set_level(enum log_level level);

/*
 * Limits every log call, so that no message can fill the log. Each call site has 16 token buckets. Each bucket holds ten lines
 * and gains one line per second. A `key` (a uid or log_key()) chooses the bucket. Pass a key for events that a user or
 * namespace can cause at will: then one user can hardly suppress messages about others. Without a key, all lines share one
 * bucket with the capacity of all 16. The next line of a bucket reports how many lines were dropped. Debug lines have no limit.
 */
#define LOG_LIMIT_KEYS 16
#define LOG_NO_KEY UINT32_MAX
struct log_limit {
	struct {
		/* monotonic time at which the bucket will have all of its tokens again */
		_Atomic uint64_t full_ns;
		_Atomic uint64_t left_out;
	} bucket[LOG_LIMIT_KEYS];
};
void log_write_limited(struct log_limit *limit, uint32_t key, enum log_level level,
		       const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Hashes a name, for example of a namespace. */
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
