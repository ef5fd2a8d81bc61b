/*
 * The file of a trace: JSON in the Trace Event Format of Chrome, which Perfetto reads too (the object form). Events are
 * written one after the other, each a line:
 *
 *     out_event(out, 'X', "launch", pid, tid, ts_ns, name);  out_duration(out, ns);
 *     out_args(out);  out_text(out, "key", "value");  out_event_end(out);
 *
 * A write that fails is kept in out->error, and nothing is written after it. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

#define OUT_BUFFER_MAX 65536

struct out {
	int fd;    /* the caller's */
	int error; /* an errno; 0: none */
	uint64_t bytes, events;
	bool has_args, is_first_arg;
	size_t used;
	char buffer[OUT_BUFFER_MAX];
};

/* Before the first event: *out is all zero but for fd. */
void out_begin(struct out *out);

/*
 * Begins an event: `phase` as the format has it, times in nanoseconds since the trace began. `category` may be NULL;
 * `name` may be any bytes: what is no UTF-8 becomes '?'.
 */
void out_event(struct out *out, char phase, const char *category, int64_t pid, int64_t tid,
	       uint64_t ts_ns, const char *name);
void out_duration(struct out *out, uint64_t ns);
/* From here on members of `args`. */
void out_args(struct out *out);
void out_text(struct out *out, const char *key, const char *value);
/* Values beyond INT64_MAX, which readers of JSON refuse, become that. */
void out_whole(struct out *out, const char *key, uint64_t value);
void out_real(struct out *out, const char *key, double value);
void out_bool(struct out *out, const char *key, bool value);
/* "0x7f00": more than a number of JSON may have. */
void out_hex(struct out *out, const char *key, uint64_t value);
void out_event_end(struct out *out);

/* {"name":"process_name","ph":"M",...}: what the process or thread is called, or where its track stands. */
void out_name(struct out *out, const char *what, int64_t pid, int64_t tid, const char *name);
void out_sort_index(struct out *out, const char *what, int64_t pid, int64_t tid, int index);

/* Ends the list of events and begins otherData; then members, then out_end(). */
void out_other(struct out *out);
/* Ends the file and writes all that is left; 0, or the -errno of the first write that failed. */
int out_end(struct out *out);
/* Writes what there is. */
void out_flush(struct out *out);
