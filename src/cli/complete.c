#include "cli/complete.h"

#include <stdio.h>
#include <string.h>

#include "cli/completion.h"
#include "cli/daemon.h"

static void print_word(void *data, const char *word, const char *help)
{
	printf("%s\t%s\n", word, help ? help : "");
}

/* Of the daemon that the options before it name. */
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

/* Where no daemon answers there is none to be completed: nothing is said. */
static void print_tenants(int argc, char **argv)
{
	struct daemon_target target = find_target(argc, argv);
	cleanup_client struct client *client = NULL;
	cleanup_json json_t *list = NULL;
	const char *current = argv[argc - 1];
	const json_t *tenant;
	size_t i;

	if (daemon_find(&target, &client, NULL) < 0 ||
	    client_request(client, "list", NULL, &list, NULL) < 0)
		return;
	json_array_foreach(json_object_get(list, "tenants"), i, tenant)
	{
		const char *name = json_string_value(json_object_get(tenant, "name"));
		const char *state = json_string_value(json_object_get(tenant, "state"));

		if (name && strncmp(name, current, strlen(current)) == 0)
			print_word(NULL, name, state);
	}
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
	case COMPLETION_FILE: puts(":file"); break;
	case COMPLETION_DIRECTORY: puts(":directory"); break;
	case COMPLETION_COMMAND: printf(":command %d\n", found.command_at); break;
	}
	return 0;
}
