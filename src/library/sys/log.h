/* The library's log, if ALLOT_LOG names "stderr" or a file. No descriptor stays open that the program could close. */
#pragma once

#include <stdbool.h>

#include "library/sys/sys.h"

/* Sets where messages go; nowhere if `target` is NULL or "". Copies `target`. Call once. */
void log_open(const char *target);

SYS_DATA bool log_is_on;

void log_write(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The process may not use the GPU, and the user must see why: written even if logging is off. */
void log_refusal(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define log_debug(...) \
	do { \
		if (__builtin_expect(log_is_on, 0)) \
			log_write(__VA_ARGS__); \
	} while (0)
