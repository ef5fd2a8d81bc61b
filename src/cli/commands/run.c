/*
 * While the command runs, an open connection to the daemon holds the tenant. If a private daemon dies, `allot run` starts
 * another; for the system's daemon, it waits. The connection to the new daemon then holds the tenant.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/command.h"
#include "cli/daemon.h"
#include "cli/run/command_child.h"
#include "cli/run/environment.h"
#include "base/install.h"
#include "cli/run/group_wait.h"
#include "cli/run/waiting.h"
#include "cli/selection.h"
#include "cli/terms.h"

/* attempts to create the tenant: a private daemon may end just when we connect to it */
#define CREATE_TRIES 5
#define POLICY_TRIES \
	30 /* further attempts while a daemon with another policy and no tenants is about to end */
#define POLICY_PAUSE_NS (100 * NSEC_PER_MSEC)
#define RETRY_FIRST_MS 50  /* first pause between attempts to reconnect after the daemon died */
#define RETRY_MOST_MS 2000 /* the pause doubles up to this value */
#define RETURN_NS \
	(30 * \
	 NSEC_PER_SEC) /* how long to wait for a new daemon if the command has not started yet */
#define POLICY_MAX 32  /* bytes of a policy's name */
#define TENANT_VARIABLE "ALLOT_SOCKET"
#define VISIBLE_VARIABLE "CUDA_VISIBLE_DEVICES"

struct run_options {
	struct terms terms;
	const char *policy;
	const char *name;
	const char *sim;
};

static const struct option_row rows[] = {
	TERM(struct run_options, "--gpu", "LIST", option_devices, gpu,
	     .help = "the GPUs it uses: an index, a UUID, a list such as\n"
		     "0,1, or all. Where CUDA_VISIBLE_DEVICES is set,\n"
		     "indexes count within it (default: the first GPU of\n"
		     "CUDA_VISIBLE_DEVICES, or the GPU with the least\n"
		     "memory promised)"),
	TERMS_SHARE_ROWS(struct run_options, TERMS_MADE),
	TERMS_VIOLATION_ROW(struct run_options, TERMS_MADE),
	TERM(struct run_options, "--host-memory", "SIZE", option_size, host_memory,
	     .help = "quota of page-locked host memory (default: no limit)"),
	TERMS_PLACE_ROWS(struct run_options),
	TERM(struct run_options, "--reserve", "SIZE", option_size, reserve,
	     .help = "with --on-full wait: wait until this much is free.\n"
		     "More, up to --memory, is granted only if it is free\n"
		     "when it is asked for (default: as --memory)"),
	TERM(struct run_options, "--wait-timeout", "TIME", option_duration, wait_timeout,
	     .help = "with --on-full wait: an allocation that has waited\n"
		     "this long fails, such as 90s or 5m (default: none)"),
	TERM(struct run_options, "--swap-arena", "SIZE", option_size, swap_arena,
	     .help = "with --on-full swap: host memory reserved for what is\n"
		     "swapped out; what does not fit stays on the GPU\n"
		     "(default: as --memory)"),
	OPTION("--policy", OPTION_VALUE_REQUIRED, "NAME", option_choice, struct run_options, policy,
	       .offered = "lease feedback token",
	       .help = "how the daemon divides GPU time among all tenants:\n"
		       "lease, or for comparison feedback or token. Refused if\n"
		       "the running daemon has another (default: lease)"),
	OPTION("--name", OPTION_VALUE_REQUIRED, "NAME", option_name, struct run_options, name,
	       .help = "the tenant's name (default: made from the process id)"),
	OPTION("--sim", OPTION_VALUE_REQUIRED, "SPEC", option_text, struct run_options, sim,
	       .offered = OPTION_SIM_SPECS,
	       .help = "run on a simulated GPU: h200, h200x2 (two of them),\n"
		       "dgx-1v, dgx-a100, pcie, mixed, h200-mig, or a file\n"
		       "(allot-sim(5))"),
	OPTION_END,
};

struct run {
	struct run_options options;
	struct daemon_target target;
	char command_path[PATHS_MAX];
	char **command;
	char library[PATHS_MAX];
	char sim_dir[PATHS_MAX];
	char policy[POLICY_MAX]; /* the daemon's policy; a restarted daemon gets it too */
	struct client *client;   /* the connection that holds the tenant */
	json_t *tenant;          /* the daemon's reply to `create` */
	struct environment environment;
};

static bool has_on_full_wait(const struct run *run)
{
	const char *on_full = run->options.terms.on_full;
	return on_full && strcmp(on_full, "wait") == 0;
}

static int find_library(struct run *run, struct error *err)
{
	int r = install_find(INSTALL_LIBRARY, run->library, err);

	if (r == 0 && strpbrk(run->library, " :"))
		return error_set(
			err, EINVAL,
			"%s: LD_PRELOAD cannot load a path with a space or a colon; install allot elsewhere",
			run->library);
	return r;
}

static int find_sim_dir(struct run *run, struct error *err)
{
	int r;

	if (!run->options.sim)
		return 0;
	r = install_find(INSTALL_SIM_CUDA, run->sim_dir, err);
	if (r < 0)
		return r;
	*strrchr(run->sim_dir, '/') = '\0';
	return 0;
}

static json_t *make_request(const struct run *run, const struct selection *selection)
{
	json_t *body = json_object();

	json_object_set_new(body, "pid", json_integer(getpid()));
	json_object_set_new(body, "devices", terms_make_devices(&run->options.terms, selection));
	json_object_set_new(body, "hold", json_true());
	/* The tenant includes every process that the command starts. */
	json_object_set_new(body, "command", json_true());
	json_object_set_new(body, "on_full", json_string("fail"));
	if (run->options.name)
		json_object_set_new(body, "name", json_string(run->options.name));
	terms_add(&run->options.terms, body);
	return body;
}

static bool has_tenants(struct client *client)
{
	cleanup_json json_t *list = NULL;

	return client_request(client, "list", json_object(), &list, NULL) < 0 ||
	       json_array_size(json_object_get(list, "tenants")) > 0;
}

/*
 * Compares the daemon's policy, which all its tenants share, with the requested one. If they differ, returns -EBUSY;
 * but -EAGAIN if the daemon has no tenants, because a private daemon without tenants ends soon.
 */
static int check_policy(struct run *run, struct client *client, const json_t *hello,
			struct error *err)
{
	const json_t *device = json_array_get(json_object_get(hello, "devices"), 0);
	const char *policy = json_string_value(json_object_get(device, "policy"));

	if (!policy)
		policy = "lease";
	if (run->options.policy && strcmp(run->options.policy, policy) != 0)
		return error_set(err, has_tenants(client) ? EBUSY : EAGAIN,
				 "--policy: '%s': the daemon in %s applies policy '%.20s' to all "
				 "tenants of its GPUs; end that daemon first, or leave --policy out",
				 run->options.policy, client_run_dir(client), policy);
	snprintf(run->policy, sizeof(run->policy), "%s", policy);
	run->target.policy = run->policy;
	return 0;
}

static void warn_of_ignored_config(const json_t *hello)
{
	const char *named = getenv("ALLOT_CONFIG");
	const char *used = json_string_value(json_object_get(hello, "config_file"));
	cleanup_free char *path = named && *named ? realpath(named, NULL) : NULL;

	if (named && *named && (!path || !used || strcmp(path, used) != 0))
		fprintf(stderr,
			"allot: run: ALLOT_CONFIG=%s is not used: the daemon already runs, with %s%s; end its tenants first, or set another ALLOT_RUN_DIR\n",
			named, used ? "the settings of " : "its defaults", used ? used : "");
}

/* Returns -ECONNRESET if the daemon ended meanwhile. */
static int try_create(struct run *run, struct error *err)
{
	cleanup_client struct client *client = NULL;
	cleanup_json json_t *hello = NULL;
	const char *visible = getenv(VISIBLE_VARIABLE);
	bool is_named = run->options.terms.gpu.is_set || visible;
	struct selection selection;
	int r = daemon_find_or_start(&run->target, &client, err);

	if (r < 0)
		return r;
	r = client_request(client, "hello", json_object(), &hello, err);
	if (r < 0)
		return r;
	warn_of_ignored_config(hello);
	r = check_policy(run, client, hello, err);
	if (r < 0)
		return r;
	r = is_named ? selection_make(json_object_get(hello, "devices"), visible,
				      run->options.terms.gpu.is_set ? &run->options.terms.gpu.devices
								    : NULL,
				      &selection, err)
		     : 0;
	if (r < 0)
		return r;
	r = client_request(client, "create", make_request(run, is_named ? &selection : NULL),
			   &run->tenant, err);
	if (r < 0)
		return r;
	client_print_warnings("run", run->tenant);
	run->client = steal_pointer(&client);
	return 0;
}

static int create_tenant(struct run *run, struct error *err)
{
	int r = try_create(run, err);

	for (int i = 1; i < CREATE_TRIES && r == -ECONNRESET; i++)
		r = try_create(run, err);
	for (int i = 0; i < POLICY_TRIES && (r == -EAGAIN || r == -ECONNRESET); i++) {
		struct timespec pause = clock_to_timespec(POLICY_PAUSE_NS);

		clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
		r = try_create(run, err);
	}
	return r;
}

static char *join_uuids(const json_t *tenant)
{
	const json_t *devices = json_object_get(tenant, "devices");
	size_t size = json_array_size(devices) * PARSE_UUID_MAX + 1;
	char *list = calloc(size, 1);

	for (size_t i = 0; list && i < json_array_size(devices); i++) {
		const char *uuid = device_uuid(json_array_get(devices, i));

		if (strlen(uuid) >= PARSE_UUID_MAX)
			continue;
		if (*list)
			strcat(list, ",");
		strcat(list, uuid);
	}
	return list;
}

static int make_environment(struct run *run, struct error *err)
{
	const char *tenant_socket = json_string_value(json_object_get(run->tenant, "socket"));
	cleanup_free char *uuids = join_uuids(run->tenant);
	char sim_socket[PATHS_MAX];
	int r;

	if (!tenant_socket || !uuids || !*uuids)
		return error_set(
			err, EPROTO,
			"the daemon's reply lacks the tenant's socket or devices; are allot and allotd of the same version?");
	if ((r = environment_copy(environ, &run->environment, err)) < 0 ||
	    (r = environment_prepend(&run->environment, "LD_PRELOAD", run->library, err)) < 0 ||
	    (r = environment_set(&run->environment, TENANT_VARIABLE, tenant_socket, err)) < 0 ||
	    (r = environment_set(&run->environment, VISIBLE_VARIABLE, uuids, err)) < 0)
		return r;
	if ((r = space_environment(run->tenant, &run->environment, err)) < 0 || !run->options.sim)
		return r;
	if ((r = paths_join(client_run_dir(run->client), "sim.sock", sim_socket, sizeof(sim_socket),
			    err)) < 0 ||
	    (r = environment_prepend(&run->environment, "LD_LIBRARY_PATH", run->sim_dir, err)) < 0)
		return r;
	return environment_set(&run->environment, "ALLOT_SIM_SOCKET", sim_socket, err);
}

static int try_rejoin(struct run *run, struct error *err)
{
	cleanup_client struct client *client = NULL;
	const char *id = json_string_value(json_object_get(run->tenant, "id"));
	json_t *body = json_pack("{s:s, s:b}", "id", id ? id : "", "command", 1);
	char run_dir[PATHS_MAX];
	int r;

	strcpy(run_dir, client_run_dir(run->client));
	r = daemon_reconnect(&run->target, run_dir, &client, err);
	if (r < 0) {
		json_decref(body);
		return r;
	}
	r = client_request(client, "attach", body, NULL, err);
	if (r < 0)
		return r;
	client_free(run->client);
	run->client = steal_pointer(&client);
	return 0;
}

/* Waits until the group of --sharing space is ready. If the daemon dies, goes on with a new one, which takes over tenants. */
static int wait_for_group(struct run *run, struct error *err)
{
	struct timespec pause = clock_to_timespec(RETRY_FIRST_MS * NSEC_PER_MSEC);
	uint64_t until_ns = clock_now_ns() + RETURN_NS;
	int r = space_await(run->client, run->tenant, err);

	while (r == -ECONNRESET && clock_now_ns() < until_ns)
		if (try_rejoin(run, err) < 0)
			clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
		else
			r = space_await(run->client, run->tenant, err);
	return r;
}

/* The search for a new daemon after the old one died. The next attempt is at next_ns, wait_ms after the previous one. */
struct rejoin_state {
	bool is_lost;
	bool has_warned;
	int wait_ms;
	uint64_t next_ns;
};

static void rejoin_daemon(struct run *run, struct rejoin_state *back)
{
	struct error err = { 0 };
	int r = try_rejoin(run, &err);

	if (r == 0) {
		*back = (struct rejoin_state){ 0 };
		return;
	}
	if (!back->has_warned && back->wait_ms >= RETRY_MOST_MS) {
		fprintf(stderr,
			"allot: run: the daemon ended and could not be started again: %s. The command goes on with its memory quota; its share of GPU time is not enforced\n",
			err.text);
		back->has_warned = true;
	}
	back->wait_ms = back->wait_ms * 2 > RETRY_MOST_MS ? RETRY_MOST_MS : back->wait_ms * 2;
	back->next_ns = clock_now_ns() + (uint64_t)back->wait_ms * NSEC_PER_MSEC;
}

/*
 * Asks the daemon to end the command's waits for memory (--on-full wait): the waiting allocations fail. Otherwise a program
 * that handles Ctrl-C itself, such as Python, would handle the signal only after the wait.
 */
static void cancel_wait(struct run *run)
{
	const char *id = json_string_or(run->tenant, "id", "");

	client_request(run->client, "unqueue", json_pack("{s:s}", "name", id), NULL, NULL);
}

static int wait_for_command(struct run *run, struct child *child)
{
	struct rejoin_state back = { 0 };
	struct waiting waiting;
	int status = 0;

	waiting_begin(&waiting, has_on_full_wait(run) && isatty(STDERR_FILENO));

	while (!child_handle(child, &status)) {
		struct pollfd fds[] = {
			{ .fd = child->signal_fd, .events = POLLIN },
			{ .fd = back.is_lost ? -1 : client_fd(run->client), .events = POLLIN },
		};
		int timeout_ms = waiting_timeout_ms(&waiting);

		if (!back.is_lost && child->is_asked_to_end && has_on_full_wait(run))
			cancel_wait(run);
		child->is_asked_to_end = false;
		if (back.is_lost) {
			uint64_t now_ns = clock_now_ns();

			if (now_ns >= back.next_ns) {
				rejoin_daemon(run, &back);
				continue;
			}
			timeout_ms = (int)((back.next_ns - now_ns) / NSEC_PER_MSEC) + 1;
		}
		/* The daemon sends only replies, and none is expected. So a readable connection means that it is gone. */
		if (poll(fds, 2, timeout_ms) > 0 && fds[1].revents)
			back = (struct rejoin_state){ .is_lost = true, .wait_ms = RETRY_FIRST_MS };
		if (!back.is_lost)
			waiting_poll(&waiting, run->client,
				     json_string_value(json_object_get(run->tenant, "id")));
	}
	return status;
}

static void run_clean(struct run *run)
{
	client_free(run->client);
	json_decref(run->tenant);
	environment_free(&run->environment);
}

/* Makes the checks that need no daemon. On failure, *ret_status is the exit status. */
static int prepare(struct run *run, int *ret_status, struct error *err)
{
	int r = terms_check(&run->options.terms, err);

	*ret_status = EXIT_OWN_FAILURE;
	if (r < 0)
		return r;
	if (getenv(TENANT_VARIABLE))
		return error_set(
			err, EBUSY,
			"this process is already in a tenant (" TENANT_VARIABLE
			" is set); tenants cannot be nested: run allot outside of that tenant");
	r = child_find(run->command[0], run->command_path, err);
	if (r < 0) {
		*ret_status = child_exit_status(r);
		return r;
	}
	r = find_library(run, err);
	return r < 0 ? r : find_sim_dir(run, err);
}

static int run_tenant(struct run *run, int *ret_status, struct error *err)
{
	struct child child;
	int r = create_tenant(run, err);

	if (r < 0)
		return r;
	r = wait_for_group(run, err);
	if (r >= 0)
		r = make_environment(run, err);
	if (r < 0)
		return r;
	r = child_start(run->command_path, run->command, run->environment.list, &child, err);
	if (r < 0) {
		*ret_status = child_exit_status(r);
		return r;
	}
	*ret_status = wait_for_command(run, &child);
	return 0;
}

static int run_run(const struct command *self, int argc, char **argv)
{
	struct run run = { 0 };
	struct error err = { 0 };
	bool help = false;
	int status = EXIT_OWN_FAILURE;
	int r = options_read(rows, OPTIONS_THEN_OPERANDS, argc, argv, &run.options, &help, &err);

	if (help)
		return command_help(self);
	if (r == 0)
		r = error_set(
			&err, EINVAL,
			"the command to run is missing; write for example: allot run --memory 4GiB -- python3 train.py");
	if (r < 0)
		return command_fail(self, &err, EXIT_OWN_FAILURE);
	argv[r] = NULL;
	run.command = argv;
	run.target.sim_spec = run.options.sim;
	run.target.policy = run.options.policy;
	r = prepare(&run, &status, &err);
	if (r == 0)
		r = run_tenant(&run, &status, &err);
	run_clean(&run);
	return r < 0 ? command_fail(self, &err, status) : status;
}

const struct command command_run = {
	.name = "run",
	.usage = "[OPTION...] [--] COMMAND [ARGUMENT...]",
	.summary = "run a command with a part of a GPU",
	.about = "Runs COMMAND as a tenant: the command and all processes that it starts together\n"
		 "have a quota of GPU memory and a share of GPU time. To them the GPU looks as\n"
		 "large as the quota. If no daemon runs, one is started for this user; it ends\n"
		 "after its last tenant.\n\n"
		 "Exit status: the command's; 128 + N if signal N ended it; 125 if allot itself\n"
		 "failed; 126 if the command cannot be executed; 127 if it was not found.",
	.rows = rows,
	.operand = OPERAND_COMMAND,
	.run = run_run,
};
