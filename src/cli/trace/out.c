#include "cli/trace/out.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

#define NUMBER_MAX 24
#define NS_PER_US 1000

void out_flush(struct out *out)
{
	size_t done = 0;

	while (done < out->used && !out->error) {
		ssize_t n = write(out->fd, out->buffer + done, out->used - done);

		if (n >= 0)
			done += (size_t)n;
		else if (errno != EINTR)
			out->error = errno;
	}
	out->bytes += done;
	out->used = 0;
}

static void put(struct out *out, const char *text, size_t length)
{
	if (length > OUT_BUFFER_MAX - out->used)
		out_flush(out);
	memcpy(out->buffer + out->used, text, length);
	out->used += length;
}

static void put_text(struct out *out, const char *text)
{
	put(out, text, strlen(text));
}

/* Faster than printf(): a trace has hundreds of thousands of numbers a second. */
static void put_number(struct out *out, uint64_t value)
{
	char text[NUMBER_MAX];
	size_t at = sizeof(text);

	do
		text[--at] = (char)('0' + value % 10);
	while (value /= 10);
	put(out, text + at, sizeof(text) - at);
}

static void put_signed(struct out *out, int64_t value)
{
	if (value < 0)
		put(out, "-", 1);
	put_number(out, value < 0 ? -(uint64_t)value : (uint64_t)value);
}

/* Chrome's Trace Event Format has times in microseconds. */
static void put_us(struct out *out, uint64_t ns)
{
	char rest[4] = { '.', (char)('0' + ns / 100 % 10), (char)('0' + ns / 10 % 10),
			 (char)('0' + ns % 10) };

	put_number(out, ns / NS_PER_US);
	put(out, rest, sizeof(rest));
}

/* Replaces control characters and invalid UTF-8 by '?'. */
static void put_string(struct out *out, const char *text)
{
	put(out, "\"", 1);
	while (*text) {
		size_t clean = (size_t)(text_clean_prefix_end(text, OUT_BUFFER_MAX) - text);
		size_t plain = strcspn(text, "\"\\"), length = plain < clean ? plain : clean;

		put(out, text, length);
		text += length;
		if (length == plain && *text) {
			char escaped[2] = { '\\', *text++ };
			put(out, escaped, 2);
		} else if (*text) {
			put(out, "?", 1);
			text++;
		}
	}
	put(out, "\"", 1);
}

void out_begin(struct out *out)
{
	put_text(out, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
}

void out_event(struct out *out, char phase, const char *category, int64_t pid, int64_t tid,
	       uint64_t ts_ns, const char *name)
{
	put_text(out, out->events++ ? ",\n{\"ph\":\"" : "\n{\"ph\":\"");
	put(out, &phase, 1);
	put_text(out, "\",\"pid\":");
	put_signed(out, pid);
	put_text(out, ",\"tid\":");
	put_signed(out, tid);
	put_text(out, ",\"ts\":");
	put_us(out, ts_ns);
	if (category) {
		put_text(out, ",\"cat\":\"");
		put_text(out, category);
		put(out, "\"", 1);
	}
	if (phase == 'i')
		put_text(out, ",\"s\":\"t\""); /* scope: the thread */
	put_text(out, ",\"name\":");
	put_string(out, name);
}

void out_duration(struct out *out, uint64_t ns)
{
	put_text(out, ",\"dur\":");
	put_us(out, ns);
}

void out_args(struct out *out)
{
	put_text(out, ",\"args\":{");
	out->has_args = out->is_first_arg = true;
}

static void put_key(struct out *out, const char *key)
{
	put_text(out, out->is_first_arg ? "\"" : ",\"");
	put_text(out, key);
	put_text(out, "\":");
	out->is_first_arg = false;
}

void out_text(struct out *out, const char *key, const char *value)
{
	put_key(out, key);
	put_string(out, value);
}

void out_whole(struct out *out, const char *key, uint64_t value)
{
	put_key(out, key);
	put_number(out, value < INT64_MAX ? value : INT64_MAX);
}

void out_real(struct out *out, const char *key, double value)
{
	char text[NUMBER_MAX + 8];

	put_key(out, key);
	snprintf(text, sizeof(text), "%.10g", isfinite(value) ? value : 0);
	put_text(out, text);
}

void out_bool(struct out *out, const char *key, bool value)
{
	put_key(out, key);
	put_text(out, value ? "true" : "false");
}

void out_hex(struct out *out, const char *key, uint64_t value)
{
	char text[NUMBER_MAX];

	snprintf(text, sizeof(text), "0x%llx", (unsigned long long)value);
	out_text(out, key, text);
}

void out_event_end(struct out *out)
{
	put_text(out, out->has_args ? "}}" : "}");
	out->has_args = false;
}

static void metadata(struct out *out, const char *what, int64_t pid, int64_t tid)
{
	out_event(out, 'M', NULL, pid, tid, 0, what);
	out_args(out);
}

void out_name(struct out *out, const char *what, int64_t pid, int64_t tid, const char *name)
{
	metadata(out, what, pid, tid);
	out_text(out, "name", name);
	out_event_end(out);
}

void out_sort_index(struct out *out, const char *what, int64_t pid, int64_t tid, int index)
{
	metadata(out, what, pid, tid);
	out_whole(out, "sort_index", (uint64_t)index);
	out_event_end(out);
}

void out_begin_other(struct out *out)
{
	put_text(out, "\n],\"otherData\":{");
	out->is_first_arg = true;
}

int out_end(struct out *out)
{
	put_text(out, "}}\n");
	out_flush(out);
	return -out->error;
}
