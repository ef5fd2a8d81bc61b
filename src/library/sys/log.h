/*
 * The library's log, off unless ALLOT_LOG names "stderr" or a file. Each message is one line, written by one write(2). No file
 * descriptor stays open, so the program cannot close or reuse one.
 */
#pragma once

#include <stdbool.h>

#include "library/sys/sys.h"

/* Sets where messages go; nowhere if `target` is NULL or "". Copies `target`. Call once. */
void log_open(const char *target);

SYS_DATA bool log_is_on;

void log_write(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Reports that the process may not use the GPU. Written even if logging is off, because the user must see this. */
void log_refusal(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define log_debug(...) \
	do { \
		if (__builtin_expect(log_is_on, 0)) \
			log_write(__VA_ARGS__); \
	} while (0)
