/*
 * The library's log, which is off unless ALLOT_LOG names "stderr" or a file. Each message is one line, written by
 * one write(2). No file descriptor stays open, so the program cannot close or reuse one of ours.
 */
#pragma once

#include <stdbool.h>

#include "library/sys/sys.h"

/*
 * Sets where messages go; called once, by the configuration. If `target` is NULL or "", nothing is logged. Copies
 * `target`.
 */
void log_open(const char *target);

SYS_DATA bool log_is_on;

void log_write(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * Reports that the process is refused the GPU. The user must see this, so the message is written even if logging
 * is off.
 */
void log_refusal(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define log_debug(...) \
	do { \
		if (__builtin_expect(log_is_on, 0)) \
			log_write(__VA_ARGS__); \
	} while (0)
