#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/command.h"
#include "cli/target.h"
#include "cli/top/data/sample.h"
#include "cli/top/data/source.h"
#include "cli/top/keys.h"
#include "cli/top/layout.h"
#include "cli/top/top_json.h"
#include "cli/top/screen.h"

#define DEFAULT_INTERVAL_NS (1 * NSEC_PER_SEC)
#define LEAST_INTERVAL_NS (100 * NSEC_PER_MSEC)
#define PAGE_COLUMNS 100 /* width of --once without a terminal */
#define SIZE_LOOK_MS 500

struct top_options {
	bool once;
	bool json;
	struct option_duration interval;
	const char *sort;
	const char *filter;
	bool is_ascii;
	bool no_color;
	struct daemon_target target;
};

static const struct option_row rows[] = {
	OPTION("--once", OPTION_VALUE_NONE, NULL, option_flag, struct top_options, once,
	       .help = "print one page, after one interval, and end"),
	OPTION("--json", OPTION_VALUE_NONE, NULL, option_flag, struct top_options, json,
	       .help = "print JSON; without --once one line each interval"),
	OPTION("--interval", OPTION_VALUE_REQUIRED, "S", option_duration, struct top_options,
	       interval, .help = "update every S seconds, 0.1 or more (default: 1)"),
	OPTION("--sort", OPTION_VALUE_REQUIRED, "COLUMN", option_choice, struct top_options, sort,
	       .offered = "name gpu state compute memory leases wait",
	       .help = "sort by name, gpu, state, compute, memory, leases or\nwait (default: compute)"),
	OPTION("--filter", OPTION_VALUE_REQUIRED, "TEXT", option_text, struct top_options, filter,
	       .help = "show only tenants with this text in their name, state\nor container, or on this GPU, such as gpu1"),
	OPTION("--ascii", OPTION_VALUE_NONE, NULL, option_flag, struct top_options, is_ascii,
	       .help = "draw with ASCII characters only (default if the locale\nis not UTF-8)"),
	OPTION("--no-color", OPTION_VALUE_NONE, NULL, option_flag, struct top_options, no_color,
	       .help = "use no colours (default if NO_COLOR is set)"),
	TARGET_ROWS(struct top_options),
	OPTION_END,
};

struct top {
	const struct top_options *options;
	struct history *history;
	/* the latest sample that the daemon answered; before the first answer, one with an empty snapshot */
	struct sample sample;
	bool has_trouble;
	struct error trouble;
	struct rows rows;
	struct view view;
	char source[128];
};

static void top_end(struct top *top)
{
	history_free(top->history);
	sample_free(&top->sample);
	order_free(&top->rows);
}

static void describe_source(const struct daemon_target *target, char *text, size_t size)
{
	char host[64] = "this machine";

	if (target->sim_spec)
		snprintf(text, size, "simulated %.60s", target->sim_spec);
	else if (target->run_dir)
		snprintf(text, size, "%.100s", target->run_dir);
	else if (gethostname(host, sizeof(host) - 1) == 0)
		snprintf(text, size, "%s", host);
	else
		snprintf(text, size, "this machine");
}

/* Replaces the shown sample by a new one. If the new one failed, the old one stays visible. */
static int adopt_sample(struct top *top, struct sample *sample, struct error *err)
{
	bool is_answered = sample->is_answered;

	top->has_trouble = !is_answered;
	top->trouble = sample->trouble;
	if (sample->snapshot && (is_answered || !top->sample.snapshot)) {
		sample_free(&top->sample);
		top->sample = *sample;
	} else {
		sample_free(sample);
	}
	if (is_answered && history_update(top->history, top->sample.snapshot) < 0)
		return error_set(err, ENOMEM, "out of memory");
	return 0;
}

static int sort_rows(struct top *top, struct error *err)
{
	order_free(&top->rows);
	if (order_make(top->sample.snapshot, top->history, top->view.sort, top->view.is_reversed,
		       top->view.filter, &top->rows) < 0)
		return error_set(err, ENOMEM, "out of memory");
	return 0;
}

static struct layout make_layout(const struct top *top, const char *clock)
{
	return (struct layout){ .snapshot = top->sample.snapshot,
				.history = top->history,
				.rows = &top->rows,
				.view = &top->view,
				.source = top->source,
				.clock = clock,
				.trouble = top->has_trouble ? top->trouble.text : NULL };
}

static void read_clock(char text[16])
{
	time_t now = time(NULL);
	struct tm local;

	localtime_r(&now, &local);
	strftime(text, 16, "%H:%M:%S", &local);
}

static int print_json(const struct top *top, struct error *err)
{
	size_t flags = top->options->once ? JSON_INDENT(2) : JSON_COMPACT;
	cleanup_json json_t *report = report_make(top->has_trouble ? NULL : top->sample.list,
						  top->has_trouble ? NULL : top->sample.tasks,
						  top->history);

	return command_print_json(report, flags | JSON_REAL_PRECISION(10), err);
}

static int print_page(struct top *top, struct error *err)
{
	char clock[16];
	struct layout layout;
	struct layout_result result;
	cleanup_cells struct cells cells = { 0 };
	int r = sort_rows(top, err);

	if (r < 0)
		return r;
	read_clock(clock);
	layout = make_layout(top, clock);
	layout.is_page = true;
	if (cells_make(command_columns(PAGE_COLUMNS), layout_page_lines(&layout),
		       top->options->is_ascii, &cells) < 0)
		return error_set(err, ENOMEM, "out of memory");
	layout_draw(&layout, &cells, &result);
	for (int line = 0; line < cells.lines; line++) {
		cells_write_line(&cells, line, stdout);
		putchar('\n');
	}
	return fflush(stdout) == 0 ? 0 : error_set_errno(err, errno, "standard output");
}

/* With --once, prints the second sample, because rates need two, or the first if no daemon answers. Otherwise prints all. */
static int print(struct top *top, struct client **client, struct error *err)
{
	struct timespec pause = clock_to_timespec(top->options->interval.ns);

	for (bool is_first = true;; is_first = false) {
		struct sample sample;
		int r = sample_take(&top->options->target, client, top->options->json, &sample, err);

		if (r < 0)
			return r;
		r = adopt_sample(top, &sample, err);
		if (r < 0)
			return r;
		if (top->options->once && (!is_first || top->has_trouble))
			return top->options->json ? print_json(top, err) : print_page(top, err);
		if (!top->options->once) {
			r = print_json(top, err);
			if (r < 0)
				return r;
		}
		if (clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL) != 0)
			return 0;
	}
}

static int draw(struct top *top, struct error *err)
{
	char clock[16];
	struct layout layout;
	struct layout_result result;
	cleanup_cells struct cells cells = { 0 };
	int columns, lines;

	read_clock(clock);
	screen_size(&columns, &lines);
	if (cells_make(columns, lines, top->options->is_ascii, &cells) < 0)
		return error_set(err, ENOMEM, "out of memory");
	layout = make_layout(top, clock);
	layout_draw(&layout, &cells, &result);
	top->view.first = result.first;
	top->view.page = result.page;
	top->view.has_details = result.has_details;
	screen_show(&cells);
	return 0;
}

static void say(struct view *view, bool is_error, const char *text)
{
	view->is_error = is_error;
	snprintf(view->message, sizeof(view->message), "%s", text);
}

static void show_outcome(struct view *view, const struct source_outcome *outcome)
{
	if (outcome->error.code)
		say(view, true, outcome->error.text);
	else if (*outcome->warning)
		say(view, true, outcome->warning);
	else
		say(view, false, "done");
}

static void begin_change(struct view *view, struct source *source)
{
	struct error err = { 0 };
	const char *op;
	json_t *body = change_request(&view->change, &op);

	if (source_change(source, op, body, &err) < 0)
		say(view, true, err.text);
	else
		say(view, false, "asked the daemon ...");
}

/* Returns true if the user quit with q. */
static bool read_keys(struct top *top, struct source *source, struct error *err)
{
	uint32_t key;

	while (screen_key(&key)) {
		enum keys_outcome outcome;

		if (key == KEYS_OTHER)
			continue;
		outcome = keys_handle(&top->view, top->sample.snapshot, &top->rows, key);
		if (outcome == KEYS_QUIT)
			return true;
		if (outcome == KEYS_CHANGE)
			begin_change(&top->view, source);
		/* This key may have moved rows, so sort them before the next key acts on a row. */
		if (sort_rows(top, err) < 0)
			return false;
	}
	return false;
}

static int show(struct top *top, struct source *source, struct error *err)
{
	struct pollfd p[] = { { .fd = STDIN_FILENO, .events = POLLIN },
			      { .fd = source_fd(source), .events = POLLIN } };

	while (!command_signal) {
		struct source_outcome outcome = { 0 };
		struct sample sample;
		int r = 0;

		if (source_take(source, &sample, &outcome))
			r = adopt_sample(top, &sample, err);
		if (outcome.is_set)
			show_outcome(&top->view, &outcome);
		if (r == 0)
			r = sort_rows(top, err);
		if (r == 0)
			r = draw(top, err);
		if (r < 0)
			return r;
		p[0].revents = p[1].revents = 0;
		/* A signal just before poll() does not interrupt it. The timeout limits how late such a signal is handled. */
		if (poll(p, 2, SIZE_LOOK_MS) < 0 && errno != EINTR)
			return error_set_errno(err, errno, "poll");
		if (read_keys(top, source, err) || (p[0].revents & (POLLHUP | POLLERR | POLLNVAL)))
			return 0;
		if (err->code)
			return -err->code;
	}
	return 0;
}

static int run_screen(struct top *top, struct client **client, struct error *err)
{
	const char *no_color = getenv("NO_COLOR");
	bool has_color = !top->options->no_color && !(no_color && *no_color);
	struct source *source = NULL;
	struct sample sample;
	int r;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return error_set(err, ENOTTY,
				 "standard input or output is not a terminal; add --once or "
				 "--json");
	/* Take the first sample before drawing, so that an error is printed as a plain line. */
	r = sample_take(&top->options->target, client, false, &sample, err);
	if (r == 0)
		r = adopt_sample(top, &sample, err);
	if (r < 0)
		return r;
	/* Signals interrupt poll(), so that the program restores the terminal before it ends. */
	command_catch_signals(0);
	r = source_open(&top->options->target, steal_pointer(client), top->options->interval.ns,
			&source, err);
	if (r == 0)
		r = screen_open(has_color, err);
	if (r == 0)
		r = show(top, source, err);
	screen_close();
	source_close(source);
	return r;
}

static int check(const void *data, const char *operand, struct error *err)
{
	const struct top_options *options = data;

	if (options->interval.ns < LEAST_INTERVAL_NS)
		return error_set(err, EINVAL, "--interval: too short; write 0.1 or more");
	if (options->json && (options->sort || options->filter))
		return error_set(err, EINVAL,
				 "%s: can't be used with --json: leave one of the two options out",
				 options->sort ? "--sort" : "--filter");
	if (options->filter && strlen(options->filter) >= VIEW_INPUT_MAX)
		return error_set(err, EINVAL,
				 "--filter: '%.20s...': too long; write at most %d bytes",
				 options->filter, VIEW_INPUT_MAX - 1);
	return 0;
}

static int watch_tenants(const struct command *self, void *data, char *operand, struct error *err)
{
	struct top_options *options = data;
	cleanup(top_end) struct top top = { .options = options };
	cleanup_client struct client *client = NULL;

	/* Set only LC_CTYPE: LC_NUMERIC could give JSON numbers a decimal comma. */
	setlocale(LC_CTYPE, "");
	options->is_ascii = options->is_ascii || strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
	top.view.sort = options->sort ? order_find(options->sort) : ORDER_COMPUTE;
	snprintf(top.view.filter, sizeof(top.view.filter), "%s",
		 options->filter ? options->filter : "");
	describe_source(&options->target, top.source, sizeof(top.source));
	if (history_make(&top.history) < 0)
		return error_set(err, ENOMEM, "out of memory");
	int r = options->once || options->json ? print(&top, &client, err)
					       : run_screen(&top, &client, err);
	if (r == -ENOTTY)
		return command_fail(self, err, EXIT_USAGE);
	if (r >= 0 && command_signal) {
		signal(command_signal, SIG_DFL);
		raise(command_signal);
	}
	return r < 0 ? r : 0;
}

const struct command command_top = {
	.name = "top",
	.usage = "[OPTION...]",
	.summary = "watch GPUs and tenants live, and change tenants",
	.about = "Shows GPUs and tenants, updated every second: compute and memory asked for and\n"
		 "got, as numbers and bars, their history, and which tenants wait, are paused or\n"
		 "are swapped out.\n\n"
		 "Keys sort and filter the list, and pause, resume or change the selected tenant\n"
		 "after a confirmation. Press ? for the keys, q to quit.",
	.rows = rows,
	.options_size = sizeof(struct top_options),
	.defaults = &(const struct top_options){ .interval.ns = DEFAULT_INTERVAL_NS },
	.check = check,
	.act = watch_tenants,
};
