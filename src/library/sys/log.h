/*
 * The library's log: off unless ALLOT_LOG names "stderr" or a file. One line a message, written by
 * one write(2); no file descriptor is kept, so none of the program's can be taken for ours.
 */
#pragma once

#include <stdbool.h>

#include "library/sys/sys.h"

/* Where messages go; called once from configuration. NULL or "": nowhere. `target` is copied. */
void log_open(const char *target);

SYS_DATA bool log_is_on;

void log_write(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A failure that the user must see although logging is off: the process is refused the GPU. */
void log_refusal(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define log_debug(...) \
	do { \
		if (__builtin_expect(log_is_on, 0)) \
			log_write(__VA_ARGS__); \
	} while (0)
