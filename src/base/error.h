/*
 * One error type for the daemon and the command line: an errno code, and one line of text that gains context on its way up.
 * Functions return -errno and describe the failure in the caller's struct error; the caller passes NULL if it does not want the
 * text. Nothing is allocated; long texts are cut.
 *
 *     return error_set_errno(err, errno, "open %s", path);   -> -ENOENT, "open /x: No such file ..."
 *     return error_add(err, r, "tenant %s", name);            -> r, "tenant a: open /x: No such ..."
 */
#pragma once

#include <stdbool.h>

#define ERROR_TEXT_MAX 512

struct error {
	int code; /* positive errno; 0 if no error */
	char text[ERROR_TEXT_MAX];
};

/* `code` is a positive errno. Returns -code. */
int error_set(struct error *err, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Like error_set(), but appends ": " and strerror(code) to the text. */
int error_set_errno(struct error *err, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Puts the formatted text and ": " before err's text. Returns `result`. */
int error_add(struct error *err, int result, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
