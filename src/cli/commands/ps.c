#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/command.h"
#include "cli/commands/table.h"
#include "cli/target.h"

#define DEFAULT_WIDTH 80
#define DEFAULT_PAUSE (1 * NSEC_PER_SEC)
#define LEAST_PAUSE_NS (50 * NSEC_PER_MSEC)

struct ps_options {
	bool json;
	struct option_duration watch;
	struct daemon_target target;
};

static const struct option_row rows[] = {
	OPTION("--json", OPTION_VALUE_NONE, NULL, option_flag, struct ps_options, json,
	       .help = "print JSON; with --watch one line each time"),
	OPTION("--watch", OPTION_VALUE_NUMBER_OR_NONE, "[S]", option_duration, struct ps_options,
	       watch, .help = "repeat every S seconds (default: 1)"),
	TARGET_ROWS(struct ps_options),
	OPTION_END,
};

struct screen {
	bool is_terminal;
	int columns, lines;
	int drawn;
};

static void measure(struct screen *screen)
{
	struct winsize size;

	screen->is_terminal = isatty(STDOUT_FILENO);
	screen->columns = screen->is_terminal ? DEFAULT_WIDTH : TABLE_UNLIMITED;
	screen->lines = 0;
	if (screen->is_terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col) {
		screen->columns = size.ws_col;
		screen->lines = size.ws_row;
	}
}

/* On a terminal, draws over the previous frame. */
static void draw(struct screen *screen, const char *frame)
{
	int lines = 0;

	if (!screen->is_terminal) {
		fputs(frame, stdout);
		fflush(stdout);
		return;
	}
	if (screen->drawn)
		printf("\033[%dA", screen->drawn);
	while (*frame && (screen->lines < 2 || lines < screen->lines - 1)) {
		int length = (int)strcspn(frame, "\n");

		printf("%.*s\033[K\n", length < screen->columns ? length : screen->columns, frame);
		frame += length + (frame[length] == '\n');
		lines++;
	}
	printf("\033[J");
	screen->drawn = lines;
	fflush(stdout);
}

/* The result has the form {"version":1,"devices":[...],"tenants":[...]} (docs/reference/protocol.md, `list`). */
static json_t *make_list(const json_t *reply)
{
	json_t *devices = json_object_get(reply, "devices");
	json_t *tenants = json_object_get(reply, "tenants");
	json_t *list = json_object();

	json_object_set_new(list, "version", json_integer(1));
	json_object_set_new(list, "devices", devices ? json_incref(devices) : json_array());
	json_object_set_new(list, "tenants", tenants ? json_incref(tenants) : json_array());
	return list;
}

/* Connects first if *client is NULL. If no daemon runs, the list is empty and *client stays NULL. */
static int fetch(const struct ps_options *options, struct client **client, json_t **ret_list,
		 struct error *err)
{
	cleanup_json json_t *reply = NULL;
	bool was_connected = *client;
	int r = *client ? 0 : daemon_find(&options->target, client, err);

	if (r < 0 && r != -ENOENT)
		return r;
	if (r == 0)
		r = client_request(*client, "list", json_object(), &reply, err);
	if (r < 0)
		*client = client_free(*client);
	/* The daemon of this connection has ended, so look for another one. */
	if (r == -ECONNRESET && was_connected)
		return fetch(options, client, ret_list, err);
	if (r < 0 && r != -ENOENT)
		return r;
	*ret_list = make_list(reply);
	return 0;
}

static void write_frame(const struct ps_options *options, const json_t *list, int width, FILE *out)
{
	size_t flags = options->watch.is_set ? JSON_COMPACT : JSON_INDENT(2);

	if (options->json) {
		json_dumpf(list, out, flags | JSON_REAL_PRECISION(10));
		fputc('\n', out);
		return;
	}
	table_write(list, width, out);
}

static void hint_at_simulated(const struct ps_options *options)
{
	char run_dir[PATHS_MAX];

	if (!options->target.sim_spec && !options->target.run_dir && daemon_find_simulated(run_dir))
		fprintf(stderr,
			"allot: ps: a simulated GPU is in use; for its tenants: allot ps --run-dir %s\n",
			run_dir);
}

static int show_once(const struct ps_options *options, struct client **client,
		     struct screen *screen, struct error *err)
{
	cleanup_json json_t *list = NULL;
	cleanup_free char *frame = NULL;
	size_t size;
	FILE *out;
	int r = fetch(options, client, &list, err);

	if (r < 0)
		return r;
	measure(screen);
	out = open_memstream(&frame, &size);
	if (!out)
		return error_set(err, ENOMEM, "out of memory");
	write_frame(options, list, screen->columns, out);
	if (options->watch.is_set && !screen->is_terminal && !options->json)
		fputc('\n', out);
	if (fclose(out) != 0)
		return error_set(err, ENOMEM, "out of memory");
	if (options->watch.is_set && !options->json)
		draw(screen, frame);
	else
		fputs(frame, stdout);
	if (fflush(stdout) != 0)
		return error_set_errno(err, errno, "standard output");
	if (!*client && !options->json && !options->watch.is_set)
		hint_at_simulated(options);
	return 0;
}

static int check(const void *options, const char *operand, struct error *err)
{
	return ((const struct ps_options *)options)->watch.ns < LEAST_PAUSE_NS
		       ? error_set(err, EINVAL, "--watch: too short; write 0.05 or more")
		       : 0;
}

static int list_tenants(const struct command *self, void *data, char *operand, struct error *err)
{
	const struct ps_options *options = data;
	cleanup_client struct client *client = NULL;
	struct screen screen = { 0 };
	struct timespec pause = clock_to_timespec(options->watch.ns);
	int r;

	do
		r = show_once(options, &client, &screen, err);
	while (r >= 0 && options->watch.is_set &&
	       clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL) == 0);
	return r;
}

const struct command command_ps = {
	.name = "ps",
	.usage = "[OPTION...]",
	.summary = "list tenants: what each asked for and what it got",
	.about = "Lists the tenants of this machine's GPUs. A tenant is one command started by\n"
		 "allot run, or one container, with all of its processes.\n\n"
		 "COMPUTE is in percent of the GPU's time. ASKED is guaranteed, and LIMIT is the\n"
		 "most it may reach. Under 1s and 60s is what it got in the last second and\n"
		 "minute. A LIMIT of 30+42 means 30 of its own and 42 lent by tenants that leave\n"
		 "time unused (--elastic). REFUSED counts allocations that would have exceeded\n"
		 "the quota. A step lasts from one wait for GPU work to the next. STEP has the\n"
		 "median and 99th percentile of its duration, and steps per second. \"queued #2\n"
		 "5.1s\": second in the queue for GPU memory (--on-full wait), for 5.1 s. USE: GPU\n"
		 "time used, halved every ten minutes; less use goes first.",
	.rows = rows,
	.options_size = sizeof(struct ps_options),
	.defaults = &(const struct ps_options){ .watch.ns = DEFAULT_PAUSE },
	.check = check,
	.act = list_tenants,
};
