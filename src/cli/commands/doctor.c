#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/command.h"
#include "cli/doctor/checks.h"
#include "cli/target.h"

#define DEFAULT_WIDTH 100

struct doctor_options {
	bool json, is_strict;
	const char *root, *kubeconfig, *node;
	struct daemon_target target;
};

static const struct option_row rows[] = {
	OPTION("--json", OPTION_VALUE_NONE, NULL, option_flag, struct doctor_options, json,
	       .help = "print JSON"),
	OPTION("--strict", OPTION_VALUE_NONE, NULL, option_flag, struct doctor_options, is_strict,
	       .help = "exit with 1 also if there is a warning"),
	OPTION("--root", OPTION_VALUE_REQUIRED, "DIR", option_text, struct doctor_options, root,
	       .help = "check the machine whose root directory is mounted\nthere, as far as files can tell"),
	OPTION("--kubeconfig", OPTION_VALUE_REQUIRED, "FILE", option_text, struct doctor_options,
	       kubeconfig,
	       .help = "how to reach the API server, which is asked for this\nnode's taints and DRA devices. Default: kube_api of the\ndaemon's settings, the kubelet's, or this pod's account"),
	OPTION("--node", OPTION_VALUE_REQUIRED, "NAME", option_text, struct doctor_options, node,
	       .help = "this node's name in the cluster (default:\nkube_node_name of the daemon's settings, NODE_NAME, or\nthe host name)"),
	TARGET_ROWS(struct doctor_options),
	OPTION_END,
};

static void (*const checks[])(struct doctor *) = {
	doctor_check_system, doctor_check_driver, doctor_check_library,
	doctor_check_daemon, doctor_check_others, doctor_check_rows,
};

/* Writes the real path of `root`; or "", which stands for this machine's root, if `root` is NULL or "/". */
static int set_root(const char *root, char ret[PATH_MAX], struct error *err)
{
	struct stat st;

	ret[0] = '\0';
	if (!root)
		return 0;
	if (!realpath(root, ret))
		return error_set_errno(err, errno, "--root %s", root);
	if (stat(ret, &st) < 0 || !S_ISDIR(st.st_mode))
		return error_set(err, ENOTDIR, "--root %s: not a directory", root);
	if (!strcmp(ret, "/"))
		ret[0] = '\0';
	return 0;
}

static void print(const struct findings *findings)
{
	size_t problems = findings_count(findings, FINDING_PROBLEM);
	size_t warnings = findings_count(findings, FINDING_WARNING);

	findings_write(findings, command_columns(DEFAULT_WIDTH), stdout);
	printf("\n%zu problem%s, %zu warning%s\n", problems, problems == 1 ? "" : "s", warnings,
	       warnings == 1 ? "" : "s");
}

static int check_root(const void *options, const char *operand, struct error *err)
{
	char root[PATH_MAX];
	return set_root(((const struct doctor_options *)options)->root, root, err);
}

static int examine(const struct command *self, void *data, char *operand, struct error *err)
{
	const struct doctor_options *options = data;
	struct doctor doctor = { 0 };
	char root[PATH_MAX];
	int r = set_root(options->root, root, err);

	if (r < 0)
		return r;
	doctor.host.root = root;
	doctor.target = options->target;
	doctor.kubeconfig = options->kubeconfig;
	doctor.node = options->node;
	for (size_t i = 0; i < sizeof(checks) / sizeof(*checks); i++)
		checks[i](&doctor);
	cleanup_json json_t *json = options->json ? findings_json(&doctor.findings) : NULL;
	if (options->json)
		r = command_print_json(json, JSON_INDENT(2), err);
	else
		print(&doctor.findings);
	bool is_well = findings_worst(&doctor.findings) <
		       (options->is_strict ? FINDING_WARNING : FINDING_PROBLEM);
	findings_free(&doctor.findings);
	return r < 0 || is_well ? r : EXIT_REFUSED;
}

const struct command command_doctor = {
	.name = "doctor",
	.usage = "[OPTION...]",
	.summary = "check this machine for what sharing a GPU needs",
	.about = "Checks the kernel, the NVIDIA driver, allot's library and daemon, container\n"
		 "engines, Kubernetes, and other software that shares these GPUs. Prints a line\n"
		 "for each: ok, note, warning (something does not work fully) or problem (sharing\n"
		 "a GPU fails), and after an arrow what to do. It changes nothing.\n\n"
		 "Exit status: 1 if there is a problem; with --strict also if there is a warning.",
	.rows = rows,
	.options_size = sizeof(struct doctor_options),
	.check = check_root,
	.act = examine,
};
