#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "client/pause.h"
#include "cli/command.h"
#include "cli/format.h"
#include "cli/target.h"

#define NAME_MOST 400 /* bytes of the longest name: "namespace/pod/container" */

struct pause_options {
	struct daemon_target target;
	bool swap_out, no_wait;
};

static const struct option_row pause_rows[] = {
	OPTION("--swap-out", OPTION_VALUE_NONE, NULL, option_flag, struct pause_options, swap_out,
	       .help = "also move its memory to host memory, and wait for that"),
	OPTION("--no-wait", OPTION_VALUE_NONE, NULL, option_flag, struct pause_options, no_wait,
	       .help = "with --swap-out: do not wait until it is done"),
	TARGET_ROWS(struct pause_options),
	OPTION_END,
};

static const struct option_row resume_rows[] = {
	TARGET_ROWS(struct pause_options),
	OPTION_END,
};

struct progress {
	const char *name;
	bool is_terminal; /* redraw one line; else print one line at the start, one at the end */
	bool is_begun;
	bool has_amounts; /* false for a container: the amounts below are unknown */
	uint64_t moved_bytes, total_bytes, stays_bytes;
};

static uint64_t bytes_in(const json_t *reply, const char *field)
{
	return (uint64_t)json_integer_value(json_object_get(reply, field));
}

static void print_moving(const struct progress *p)
{
	char moved[FORMAT_MAX], total[FORMAT_MAX];

	format_bytes(p->moved_bytes, moved);
	format_bytes(p->total_bytes, total);
	fprintf(stderr, "%sallot: pause: '%s': ", p->is_terminal ? "\r\033[K" : "", p->name);
	if (p->total_bytes)
		fprintf(stderr, "%s of %s moved to host memory", moved, total);
	else
		fputs("its GPU memory is being moved to host memory", stderr);
	if (!p->is_terminal)
		fputc('\n', stderr);
	fflush(stderr);
}

static void clear_line(const struct progress *p)
{
	if (p->is_terminal && p->is_begun)
		fputs("\r\033[K", stderr);
}

static void print_end(const struct progress *p)
{
	char total[FORMAT_MAX], stays[FORMAT_MAX];

	format_bytes(p->total_bytes, total);
	format_bytes(p->stays_bytes, stays);
	fprintf(stderr, "allot: pause: '%s': ", p->name);
	if (!p->has_amounts)
		fputs("its GPU memory is in host memory\n", stderr);
	else if (p->stays_bytes)
		fprintf(stderr, "%s moved to host memory; %s cannot be moved and stays on the GPU\n",
			total, stays);
	else if (p->total_bytes)
		fprintf(stderr, "%s moved to host memory\n", total);
	else
		fputs("it has no memory on its GPUs\n", stderr);
}

static bool watch(void *data, const json_t *reply)
{
	struct progress *p = data;
	bool is_moving = json_is_true(json_object_get(reply, "moving"));

	p->has_amounts = json_object_get(reply, "total_bytes");
	p->moved_bytes = bytes_in(reply, "moved_bytes");
	p->total_bytes = bytes_in(reply, "total_bytes");
	p->stays_bytes = bytes_in(reply, "stays_bytes");
	if (is_moving && (p->is_terminal || !p->is_begun))
		print_moving(p);
	p->is_begun |= is_moving;
	return !command_signal;
}

static int swap_out(struct client *client, const char *name, struct error *err)
{
	struct progress progress = { .name = name, .is_terminal = isatty(STDERR_FILENO) };
	struct client_pause_options options = { .swap_out = true, .watch = watch, .data = &progress };
	int r;

	command_catch_signals(SA_RESETHAND);
	r = client_pause(client, "pause", name, &options, err);
	clear_line(&progress);
	if (r >= 0)
		print_end(&progress);
	return r != -EINTR
		       ? r
		       : error_set(err, EINTR,
				   "stopped waiting: '%s' stays paused, and its memory is still being moved to host memory; allot ps shows the state, allot resume %s undoes it",
				   name, name);
}

static int pause_or_resume(const struct command *self, void *data, char *name, struct error *err)
{
	const struct pause_options *options = data;
	cleanup_client struct client *client = NULL;
	struct client_pause_options request = { .swap_out = options->swap_out,
						.no_wait = options->no_wait };
	int r = daemon_find(&options->target, &client, err);

	if (r < 0)
		return error_add(err, r, "'%s'", name);
	if (!options->swap_out || options->no_wait)
		return client_pause(client, self->name, name, &request, err);
	r = swap_out(client, name, err);
	return r == -EINTR ? command_fail(self, err, 128 + command_signal) : r;
}

static int check(const void *data, const char *name, struct error *err)
{
	const struct pause_options *options = data;
	size_t n = 0;

	while (isalnum((unsigned char)name[n]) || (n && name[n] && strchr("._/-", name[n])))
		n++;
	if (!n || name[n] || n > NAME_MOST)
		return error_set(err, EINVAL,
				 "'%.63s': must be a tenant's name, or a container's name or id",
				 name);
	if (options->no_wait && !options->swap_out)
		return error_set(err, EINVAL,
				 "--no-wait: only with --swap-out; add that, or leave out --no-wait");
	return 0;
}

#define PAUSE_PARTS \
	.usage = "NAME [OPTION...]", .operand = OPERAND_TENANT, \
	.options_size = sizeof(struct pause_options), .wanted = WANTED_TENANT, .check = check, \
	.act = pause_or_resume

const struct command command_pause = {
	.name = "pause",
	.summary = "stop a tenant from starting more work on its GPUs",
	.about = "Stops a tenant from starting more work on its GPUs until allot resume. Work\n"
		 "that already runs is finished, and the tenant keeps its memory.\n\n"
		 "With --swap-out its memory is also moved to host memory, so that others can use\n"
		 "the GPU. The command waits for that and shows the progress; Ctrl-C ends only\n"
		 "the waiting. Unless the tenant was run with --on-full swap, this needs driver\n"
		 "570 or newer.\n\n"
		 "NAME may also be a container that uses a GPU (see allot tasks): its name,\n"
		 "\"namespace/pod/name\", or the beginning of its id. Its processes are frozen.\n"
		 "Only root and members of the group allot may do that.",
	.rows = pause_rows,
	PAUSE_PARTS,
};

const struct command command_resume = {
	.name = "resume",
	.summary = "let a paused tenant go on",
	.about = "Lets a tenant or container go on that was paused or frozen: by allot pause, or\n"
		 "because a process of it bypassed the library (--on-violation freeze). Memory\n"
		 "that was swapped out comes back first.",
	.rows = resume_rows,
	PAUSE_PARTS,
};
