/*
 * Writes metrics as text for Prometheus, format 0.0.4. Each name has a # HELP and a # TYPE line, then one line per sample.
 * Changes nothing but the struct exposition; not thread safe.
 *
 *     # HELP allot_device_memory_bytes Memory that can be held on the device, without the driver's own reserve.
 *     # TYPE allot_device_memory_bytes gauge
 *     allot_device_memory_bytes{device="0",uuid="GPU-1"} 151523885056
 *
 * If memory runs out, all functions may still be called, and exposition_end() reports it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXPOSITION_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* bytes of a sample's labels with the NUL; enough for a pod's container on a device */
#define EXPOSITION_LABELS_MAX 768
struct exposition_labels {
	char text[EXPOSITION_LABELS_MAX];
};

enum exposition_type { EXPOSITION_GAUGE, EXPOSITION_COUNTER, EXPOSITION_SUMMARY };

/* A text under construction. Zero it to start an empty one. */
struct exposition {
	char *text;
	size_t used, size;
	/* where the latest name's # HELP and # TYPE lines begin and end */
	size_t name_begin, name_end;
	bool failed;
};

const char *exposition_type_name(enum exposition_type type);

/* Begins a metric: writes # HELP (escapes `help`) and # TYPE, which are removed again if no sample follows. */
void exposition_family(struct exposition *x, const char *name, enum exposition_type type,
		       const char *help);

/*
 * Add one sample. `labels` is made by exposition_label(), or "". exposition_seconds() writes ns as seconds, unrounded;
 * exposition_real() writes nine significant digits, NaN, +Inf or -Inf.
 */
void exposition_whole(struct exposition *x, const char *name, const char *labels, uint64_t value);
void exposition_seconds(struct exposition *x, const char *name, const char *labels, uint64_t ns);
void exposition_real(struct exposition *x, const char *name, const char *labels, double value);

/*
 * Appends key="value" to the labels in `text`, after a comma if needed. Escapes the value, and replaces bytes that are not
 * UTF-8 by '?', since one such byte invalidates the page. Cuts a value that is too long, but never within a character.
 */
void exposition_label(char *text, size_t size, const char *key, const char *value);

/* Gives the text, for the caller to free, and its length. Returns 0 or -ENOMEM. Leaves *x empty. */
int exposition_end(struct exposition *x, char **ret_text, size_t *ret_length);
