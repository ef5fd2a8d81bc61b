/* allot complete: shells call it to complete a command line (deploy/completion). */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/install.h"
#include "cli/child_output.h"
#include "cli/command.h"
#include "cli/completion.h"
#include "cli/daemon.h"

#define BENCHES_TEXT_MAX 65536

static void print_word(void *data, const char *word, const char *help)
{
	printf("%s\t%s\n", word, help ? help : "");
}

static void print_if_begun(const char *current, const char *word, const char *help)
{
	if (word && strncmp(word, current, strlen(current)) == 0)
		print_word(NULL, word, help);
}

static struct daemon_target find_target(int argc, char **argv)
{
	struct daemon_target target = { 0 };

	for (int i = 0; i + 2 < argc; i++) {
		const char *value = argv[i + 1];

		if (strcmp(value, "=") == 0)
			value = argv[i + 2];
		if (strcmp(argv[i], "--sim") == 0)
			target.sim_spec = value;
		else if (strcmp(argv[i], "--run-dir") == 0)
			target.run_dir = value;
	}
	return target;
}

static json_t *ask_daemon(int argc, char **argv, const char *op)
{
	struct daemon_target target = find_target(argc, argv);
	cleanup_client struct client *client = NULL;
	json_t *reply = NULL;

	if (daemon_find(&target, &client, NULL) >= 0)
		client_request(client, op, json_object(), &reply, NULL);
	return reply;
}

static void print_tenants(int argc, char **argv)
{
	cleanup_json json_t *list = ask_daemon(argc, argv, "list");
	const json_t *tenant;
	size_t i;

	json_array_foreach(json_object_get(list, "tenants"), i, tenant)
	{
		print_if_begun(argv[argc - 1], json_string_value(json_object_get(tenant, "name")),
			       json_string_value(json_object_get(tenant, "state")));
	}
}

static void print_gpus(int argc, char **argv)
{
	cleanup_json json_t *hello = ask_daemon(argc, argv, "hello");
	const char *current = strcmp(argv[argc - 1], "=") == 0 ? "" : argv[argc - 1];
	const json_t *device;
	size_t i;

	json_array_foreach(json_object_get(hello, "devices"), i, device)
	{
		const char *name = json_string_value(json_object_get(device, "name"));
		char index[24];

		snprintf(index, sizeof(index), "%lld",
			 (long long)json_integer_value(json_object_get(device, "index")));
		print_if_begun(current, index, name);
		if (*current)
			print_if_begun(current, json_string_value(json_object_get(device, "uuid")),
				       name);
	}
}

/* A line of the list is for example "shares      about   40 s  what is measured". */
static void print_benches(const char *current)
{
	char program[PATHS_MAX], text[BENCHES_TEXT_MAX];
	char *argv[] = { (char *)"python3", program, (char *)"--list", NULL };

	if (install_find(INSTALL_BENCH, program, NULL) < 0 ||
	    child_output(argv, false, -1, text, sizeof(text), NULL, NULL) < 0)
		return;
	for (char *rest = text, *line; (line = strtok_r(rest, "\n", &rest));) {
		const char *about = strstr(line, " s  ");

		line[strcspn(line, " ")] = '\0';
		if (strcmp(line, "together") != 0)
			print_if_begun(current, line, about ? about + strlen(" s  ") : NULL);
	}
	print_if_begun(current, "all", "all benchmarks");
}

int complete_run(const struct command *const *commands, int argc, char **argv)
{
	struct completion found;

	if (argc < 1)
		return 0;
	found = completion_find(commands, argc, argv, print_word, NULL);
	switch (found.want) {
	case COMPLETION_NOTHING: break;
	case COMPLETION_TENANT: print_tenants(argc, argv); break;
	case COMPLETION_GPU: print_gpus(argc, argv); break;
	case COMPLETION_BENCH: print_benches(argv[argc - 1]); break;
	case COMPLETION_FILE: puts(":file"); break;
	case COMPLETION_DIRECTORY: puts(":directory"); break;
	case COMPLETION_COMMAND: printf(":command %d\n", found.command_at); break;
	}
	return 0;
}
