#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/command.h"
#include "cli/format.h"
#include "cli/target.h"
#include "cli/trace/record.h"

#define ROUND_NS (20 * NSEC_PER_MSEC)
#define PROGRESS_NS (250 * NSEC_PER_MSEC)
#define DEFAULT_LIMIT_BYTES (UINT64_C(1) << 30)
#define FILE_NAME_MAX 128

struct trace_options {
	struct daemon_target target;
	struct option_duration seconds;
	struct option_size limit;
	const char *output;
};

static const struct option_row rows[] = {
	OPTION("--seconds", OPTION_VALUE_REQUIRED, "S", option_duration, struct trace_options,
	       seconds,
	       .help = "record for S seconds (default: until Ctrl-C, or until\nthe tenant ends)"),
	OPTION("--output", OPTION_VALUE_REQUIRED, "FILE", option_text, struct trace_options, output,
	       .help = "the file to write; - is standard output (default:\nNAME.trace.json)"),
	OPTION("--limit", OPTION_VALUE_REQUIRED, "SIZE", option_size, struct trace_options, limit,
	       .help = "stop when the file has this size (default: 1GiB)"),
	TARGET_ROWS(struct trace_options),
	OPTION_END,
};

enum trace_end { GOES_ON, WAS_INTERRUPTED, TIME_IS_OVER, TENANT_ENDED, FILE_IS_LARGE, CANT_GO_ON };

static int open_output(const char *path, struct error *err)
{
	int fd;

	if (!strcmp(path, "-"))
		fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
	else
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	return fd < 0 ? error_set(err, errno,
				  "--output: '%.200s': %s; name a file that can be written, or -",
				  path, strerror(errno))
		      : fd;
}

static void show_progress(const struct record *r)
{
	char bytes[FORMAT_MAX], lasted[FORMAT_MAX];

	format_bytes(r->out.bytes, bytes);
	format_seconds((double)record_lasted_ns(r) / (double)NSEC_PER_SEC, lasted);
	fprintf(stderr,
		"\r\033[Kallot: trace: '%s': %s, %" PRIu64 " launches, %" PRIu64 " leases, %s%s",
		r->tracks.tenant, lasted, r->sums.launches, r->tracks.leases, bytes,
		r->process_count ? "" : "; no process records yet");
	fflush(stderr);
}

static void clear_progress(void)
{
	fputs("\r\033[K", stderr);
}

static enum trace_end find_end(const struct record *r, const struct trace_options *options)
{
	uint64_t most = options->limit.is_set ? options->limit.bytes : DEFAULT_LIMIT_BYTES;

	if (r->out.error)
		return CANT_GO_ON;
	if (command_signal)
		return WAS_INTERRUPTED;
	if (r->has_ended)
		return TENANT_ENDED;
	if (options->seconds.is_set && record_lasted_ns(r) >= options->seconds.ns)
		return TIME_IS_OVER;
	return r->out.bytes >= most ? FILE_IS_LARGE : GOES_ON;
}

static uint64_t next_round_ns(const struct record *r, const struct trace_options *options)
{
	uint64_t lasted = record_lasted_ns(r);

	if (options->seconds.is_set && options->seconds.ns > lasted &&
	    options->seconds.ns - lasted < ROUND_NS)
		return options->seconds.ns - lasted;
	return ROUND_NS;
}

static enum trace_end record_until_end(struct record *r, const struct trace_options *options,
				       struct error *err)
{
	bool is_shown = isatty(STDERR_FILENO);
	uint64_t shown_ns = 0;
	enum trace_end end = GOES_ON;

	while (end == GOES_ON) {
		struct timespec pause = clock_to_timespec(next_round_ns(r, options));

		clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
		if (record_round(r, false, err) < 0)
			end = CANT_GO_ON;
		else
			end = find_end(r, options);
		if (is_shown && clock_now_ns() - shown_ns >= PROGRESS_NS) {
			show_progress(r);
			shown_ns = clock_now_ns();
		}
	}
	/* A last round writes the events and leases that are left. */
	if (end != CANT_GO_ON && record_round(r, true, err) < 0)
		end = CANT_GO_ON;
	if (is_shown)
		clear_progress();
	return end;
}

static void print_untraced(const struct record *r)
{
	for (size_t i = 0; record_untraced(r, i); i++)
		fprintf(stderr,
			"allot: trace: warning: process %d is not in the trace: it is stopped, its allot library is too old to record, or 1024 other processes are recorded already\n",
			record_untraced(r, i));
}

static void print_summary(const struct record *r, const char *path, enum trace_end end)
{
	char bytes[FORMAT_MAX], lasted[FORMAT_MAX];
	bool is_file = strcmp(path, "-") != 0;

	format_bytes(r->out.bytes, bytes);
	format_seconds((double)record_lasted_ns(r) / (double)NSEC_PER_SEC, lasted);
	fprintf(stderr,
		"allot: trace: %s of '%s'%s: %zu process%s, %" PRIu64 " launches, %" PRIu64
		" leases, %" PRIu64 " allocations (%" PRIu64 " denied), %" PRIu64
		" waits; %s%s%s%s\n",
		lasted, r->tracks.tenant,
		end == TENANT_ENDED    ? ", which has ended"
		: end == FILE_IS_LARGE ? ", until the file was as large as --limit allows"
				       : "",
		r->process_count, r->process_count == 1 ? "" : "es", r->sums.launches,
		r->tracks.leases, r->sums.allocations, r->sums.denied,
		r->sums.gate_waits + r->sums.memory_waits, bytes, is_file ? " in " : "",
		is_file ? path : "",
		is_file ? ": open it at https://ui.perfetto.dev or chrome://tracing" : "");
	if (r->sums.lost)
		fprintf(stderr,
			"allot: trace: warning: %" PRIu64
			" events are missing in the trace: they came faster than they could be written\n",
			r->sums.lost);
	if (r->tracks.leases_lost)
		fprintf(stderr,
			"allot: trace: warning: %" PRIu64
			" leases are missing in the trace: they came faster than they could be written\n",
			r->tracks.leases_lost);
	print_untraced(r);
}

static int record_to(struct client *client, const struct trace_options *options, const char *tenant,
		     const char *path, struct error *err)
{
	struct record *record = NULL;
	cleanup_fd int fd = -1;

	/* From here on, a first signal must not end the program before the file is finished. */
	command_catch_signals(SA_RESETHAND);
	signal(SIGPIPE, SIG_IGN);
	/* Ask the daemon before creating the file: a wrong name must not destroy an existing file. */
	int r = record_begin(client, tenant, -1, &record, err);

	if (r < 0)
		return r;
	fd = open_output(path, err);
	if (fd < 0) {
		record_free(record);
		return fd;
	}
	record->out.fd = fd;
	enum trace_end end = record_until_end(record, options, err);
	r = record_finish(record);
	if (r < 0)
		r = error_set_errno(err, -r, "--output: '%.200s': can't be written", path);
	else if (end == CANT_GO_ON)
		r = error_add(err, -err->code,
			      "recording stopped after %.1f s; what was recorded is in '%.200s'",
			      (double)record_lasted_ns(record) / (double)NSEC_PER_SEC, path);
	else
		print_summary(record, path, end);
	record_free(record);
	return r;
}

static int trace_tenant(const struct command *self, void *data, char *tenant, struct error *err)
{
	const struct trace_options *options = data;
	cleanup_client struct client *client = NULL;
	char path[FILE_NAME_MAX];

	snprintf(path, sizeof(path), "%s.trace.json", tenant);
	int r = daemon_find(&options->target, &client, err);
	if (r >= 0)
		r = record_to(client, options, tenant, options->output ? options->output : path,
			      err);
	return r;
}

const struct command command_trace = {
	.name = "trace",
	.usage = "NAME [OPTION...]",
	.operand = OPERAND_TENANT,
	.summary = "record what a tenant does on its GPUs, for Perfetto",
	.about = "Records what a tenant's processes do on its GPUs until Ctrl-C, until the tenant\n"
		 "ends, or for --seconds. Recorded are launches, copies, allocations, waits for\n"
		 "the GPU and for memory, and swapping. The tenant's memory and compute are\n"
		 "recorded too, and which tenant had each GPU when.\n\n"
		 "The file is JSON in the Trace Event Format: open it at https://ui.perfetto.dev\n"
		 "or chrome://tracing. Tenants that are not traced are not slowed down.",
	.rows = rows,
	.options_size = sizeof(struct trace_options),
	.wanted = WANTED_TENANT,
	.check = command_check_tenant,
	.act = trace_tenant,
};
