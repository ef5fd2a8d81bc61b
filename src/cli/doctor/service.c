#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/client.h"
#include "cli/doctor/checks.h"

static void describe(struct doctor *d, const json_t *hello, const char *run_dir)
{
	const char *version = json_string_value(json_object_get(hello, "daemon"));
	size_t devices = json_array_size(json_object_get(hello, "devices"));
	int pid = (int)json_integer_value(json_object_get(hello, "pid"));
	bool simulated = json_is_true(json_object_get(hello, "simulated"));

	if (!version || strcmp(version, "allotd " ALLOT_VERSION)) {
		finding_set_remedy(
			findings_add(
				&d->findings, FINDING_WARNING, "daemon",
				"%s (pid %d, %s) is of another version than this program, " ALLOT_VERSION,
				version ? version : "the daemon", pid, run_dir),
			"restart the daemon: tenants go on meanwhile, and the new daemon takes them over");
		return;
	}
	findings_add(&d->findings, FINDING_OK, "daemon", "%s, pid %d, %s, %zu %sGPU%s", version,
		     pid, run_dir, devices, simulated ? "simulated " : "", devices == 1 ? "" : "s");
}

void doctor_check_daemon(struct doctor *d)
{
	cleanup_client struct client *client = NULL;
	cleanup_json json_t *hello = NULL;
	struct error err;
	int r;

	if (!host_is_local(&d->host))
		return;
	r = daemon_find(&d->target, &client, &err);
	/* A tenant's container lacks the daemon's socket, so "none runs" would mislead. gather_tenant() asks instead. */
	if (r == -ENOENT && getenv("ALLOT_SOCKET"))
		return;
	if (r == -ENOENT) {
		findings_add(
			&d->findings, FINDING_NOTE, "daemon",
			"none runs; allot run starts one for its user, systemctl start allotd one for all users");
		return;
	}
	/* The check of the driver has reported an invalid --sim already. */
	if (r == -EINVAL && d->target.sim_spec)
		return;
	if (r >= 0)
		r = client_request(client, "hello", json_object(), &hello, &err);
	if (r < 0) {
		finding_set_remedy(
			findings_add(&d->findings, FINDING_PROBLEM, "daemon", "%s", err.text),
			"see its log (journalctl -u allotd, or allotd.log in its run directory)");
		return;
	}
	describe(d, hello, client_run_dir(client));
}
