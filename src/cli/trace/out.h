/*
 * Writes a trace as JSON in Chrome's Trace Event Format (the object form), which Perfetto reads too, one event per line:
 *
 *     out_event(out, 'X', "launch", pid, tid, ts_ns, name);  out_duration(out, ns);
 *     out_args(out);  out_text(out, "key", "value");  out_event_end(out);
 *
 * A failed write sets out->error and ends all writing. Not thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

#define OUT_BUFFER_MAX 65536

struct out {
	int fd;    /* owned by the caller */
	int error; /* errno of the first write that failed; 0 if none did */
	uint64_t bytes, events;
	bool has_args, is_first_arg;
	size_t used;
	char buffer[OUT_BUFFER_MAX];
};

/* Call before the first event. All of *out except fd must be zero. */
void out_begin(struct out *out);

/* `phase` is the format's letter for the kind of event. `category` may be NULL. ts_ns counts from the trace's begin. */
void out_event(struct out *out, char phase, const char *category, int64_t pid, int64_t tid,
	       uint64_t ts_ns, const char *name);
void out_duration(struct out *out, uint64_t ns);
/* Begins the event's `args`. The functions below, up to out_hex(), each add a member. */
void out_args(struct out *out);
void out_text(struct out *out, const char *key, const char *value);
/* Writes a value above INT64_MAX as INT64_MAX, because JSON readers refuse greater values. */
void out_whole(struct out *out, const char *key, uint64_t value);
void out_real(struct out *out, const char *key, double value);
void out_bool(struct out *out, const char *key, bool value);
/* Writes text such as "0x7f00", for values that may be too great for a JSON number. */
void out_hex(struct out *out, const char *key, uint64_t value);
void out_event_end(struct out *out);

/* Write a metadata event: the name of a process or thread ("process_name"), or the position of its track. */
void out_name(struct out *out, const char *what, int64_t pid, int64_t tid, const char *name);
void out_sort_index(struct out *out, const char *what, int64_t pid, int64_t tid, int index);

/* Ends the events and begins otherData, the format's object for metadata. Add members, then call out_end(). */
void out_begin_other(struct out *out);
/* Ends the file and writes everything that is left. Returns 0, or the -errno of the first write that failed. */
int out_end(struct out *out);
void out_flush(struct out *out);
