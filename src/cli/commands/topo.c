#include <stdio.h>

#include "cli/command.h"
#include "cli/commands/topo_text.h"
#include "cli/daemon.h"

struct topo_options {
	bool json;
	struct daemon_target target;
};

static const struct option_row rows[] = {
	OPTION("--json", OPTION_VALUE_NONE, NULL, option_flag, struct topo_options, json,
	       .help = "print JSON"),
	OPTION("--sim", OPTION_VALUE_REQUIRED, "SPEC", option_text, struct topo_options,
	       target.sim_spec, .offered = OPTION_SIM_SPECS,
	       .help = "a simulated machine: h200, h200x8, dgx-1v, dgx-a100,\n"
		       "pcie, mixed, h200-mig, or a file (allot-sim(5))"),
	OPTION("--run-dir", OPTION_VALUE_REQUIRED, "DIR", option_text, struct topo_options,
	       target.run_dir, .help = "use the daemon whose run directory is DIR"),
	OPTION_END,
};

static int show_topology(const struct command *self, void *data, char *operand, struct error *err)
{
	const struct topo_options *options = data;
	cleanup_client struct client *client = NULL;
	cleanup_json json_t *reply = NULL;
	/* With --run-dir, a daemon must run in that directory. Without --run-dir, a private daemon is started if none runs. */
	int r = options->target.run_dir ? daemon_find(&options->target, &client, err)
					: daemon_find_or_start(&options->target, &client, err);
	if (r >= 0)
		r = client_request(client, "topology", json_object(), &reply, err);
	if (r < 0)
		return r;
	json_object_del(reply, "ok");
	if (options->json)
		return command_print_json(reply, JSON_INDENT(2), err);
	topo_text_write(reply, stdout);
	return 0;
}

const struct command command_topo = {
	.name = "topo",
	.usage = "[OPTION...]",
	.summary = "show how the GPUs are connected",
	.about = "Shows this machine's GPUs as a tree of NUMA nodes, host bridges and PCIe\n"
		 "switches. The link between each two is the number of NVLinks, or the PCIe path\n"
		 "in the words of nvidia-smi topo -m. A tenant with several GPUs gets those with\n"
		 "the fastest links.",
	.rows = rows,
	.options_size = sizeof(struct topo_options),
	.act = show_topology,
};
