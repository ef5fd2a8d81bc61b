#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/commands/tasks_table.h"
#include "cli/target.h"

struct tasks_options {
	bool json;
	struct daemon_target target;
};

static const struct option_row rows[] = {
	OPTION("--json", OPTION_VALUE_NONE, NULL, option_flag, struct tasks_options, json,
	       .help = "print JSON"),
	TARGET_ROWS(struct tasks_options),
	OPTION_END,
};

static int list_tasks(const struct command *self, void *data, char *operand, struct error *err)
{
	const struct tasks_options *options = data;
	cleanup_client struct client *client = NULL;
	cleanup_json json_t *reply = NULL;
	int r = daemon_find(&options->target, &client, err);
	if (r >= 0)
		r = client_request(client, "tasks", json_object(), &reply, err);
	if (r < 0)
		return r;
	json_object_del(reply, "ok");
	if (options->json)
		return command_print_json(reply, JSON_INDENT(2) | JSON_REAL_PRECISION(15), err);
	const char *watch = json_string_value(json_object_get(reply, "watch"));
	tasks_table_write(reply, stdout);
	bool is_private = json_is_true(json_object_get(reply, "private"));
	if (watch && !strcmp(watch, "off"))
		fputs(is_private ? "allot: tasks: a daemon that 'allot run' started lists no "
				   "processes: allot ps shows its tenants; start allotd as a "
				   "system service to list every process\n"
				 : "allot: tasks: this daemon watches tenants only; set "
				   "watch_tasks = on in its settings to see every process\n",
		      stderr);
	return 0;
}

const struct command command_tasks = {
	.name = "tasks",
	.usage = "[OPTION...]",
	.summary = "list all processes that use a GPU, and their containers",
	.about = "Lists the processes that use or used this machine's GPUs, whether or not they\n"
		 "run under allot, and the containers they are in.\n\n"
		 "A container is \"waiting\" while it is frozen because too little GPU memory is\n"
		 "free to start it (setting freezer = on). It is \"paused\" if it was frozen by\n"
		 "allot pause, or for bypassing the library.",
	.rows = rows,
	.options_size = sizeof(struct tasks_options),
	.act = list_tasks,
};
