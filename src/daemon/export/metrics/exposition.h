/*
 * Writes metrics as text for Prometheus, format 0.0.4: for each name a # HELP and a # TYPE line, then its
 * samples, one a line. Pure; not thread safe.
 *
 *     # HELP allot_device_memory_bytes What can be held on the device.
 *     # TYPE allot_device_memory_bytes gauge
 *     allot_device_memory_bytes{device="0",uuid="GPU-1"} 151523885056
 *
 * Out of memory is noted, not returned: everything may be called on, and exposition_end() tells.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXPOSITION_TYPE "text/plain; version=0.0.4; charset=utf-8"

#define EXPOSITION_LABELS_MAX 768 /* a container in a pod, with all their names, on a device */
struct exposition_labels {
	char text[EXPOSITION_LABELS_MAX];
};

enum exposition_type { EXPOSITION_GAUGE, EXPOSITION_COUNTER, EXPOSITION_SUMMARY };

/* All zero: an empty text. */
struct exposition {
	char *text;
	size_t used, size;
	size_t name_begin, name_end; /* of the last name's first two lines */
	bool failed;
};

/* "gauge", "counter", "summary". */
const char *exposition_type_name(enum exposition_type type);

/* Begins a name. `help` is escaped. A name that gets no sample leaves nothing. */
void exposition_family(struct exposition *x, const char *name, enum exposition_type type,
		       const char *help);

/*
 * One sample. `labels` is what stands between the braces, as exposition_label() makes it; "": none.
 * Nanoseconds are written as seconds, to the last of them; a real number to nine digits, and as NaN,
 * +Inf or -Inf where it is none.
 */
void exposition_whole(struct exposition *x, const char *name, const char *labels, uint64_t value);
void exposition_seconds(struct exposition *x, const char *name, const char *labels, uint64_t ns);
void exposition_real(struct exposition *x, const char *name, const char *labels, double value);

/*
 * Adds key="value" to the labels in `text` of `size` bytes, with a comma where there are some. The value
 * is escaped; bytes that are no UTF-8 become '?', since one of them would cost the whole page. A value that
 * does not fit is cut before a character, so that the text is well-formed as long as `key` fits.
 */
void exposition_label(char *text, size_t size, const char *key, const char *value);

/* The text, to be freed, and its length; -ENOMEM. *x is empty afterwards. */
int exposition_end(struct exposition *x, char **ret_text, size_t *ret_length);
