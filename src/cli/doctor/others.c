#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "cli/doctor/checks.h"
#include "cli/doctor/judge/facts.h"

/* a longer environment of a process is not read to its end */
#define ENVIRONMENT_MAX_BYTES 65536
#define PLUGINS "/var/lib/kubelet/device-plugins"

/*
 * Whether allotd started the MPS process. If so, the pipe directory in the process's environment is "<run dir>/mps/<id>/pipe",
 * and "<run dir>/mps/<id>.json" exists (daemon/space/group_files.h). FACT_UNKNOWN if this user may not read the environment.
 */
static enum fact is_of_allotd(const struct host *host, const char *pid)
{
	static const char name[] = "CUDA_MPS_PIPE_DIRECTORY=", leaf[] = "/pipe";
	char path[PATH_MAX], environment[ENVIRONMENT_MAX_BYTES];

	snprintf(path, sizeof(path), "/proc/%s/environ", pid);
	long n = host_read(host, path, environment, sizeof(environment));
	if (n <= 0)
		return FACT_UNKNOWN;
	for (const char *one = environment; one < environment + n; one += strlen(one) + 1) {
		size_t length = strlen(one);
		if (strncmp(one, name, strlen(name)) != 0 || length < strlen(name) + strlen(leaf) ||
		    strcmp(one + length - strlen(leaf), leaf) != 0)
			continue;
		snprintf(path, sizeof(path), "%.*s.json",
			 (int)(length - strlen(name) - strlen(leaf)), one + strlen(name));
		return host_has(host, path) ? FACT_YES : FACT_NO;
	}
	return FACT_NO;
}

static bool find_mps(void *data, const char *name)
{
	struct doctor *d = data;
	char path[PATH_MAX], command[64];

	if (!isdigit((unsigned char)name[0]))
		return true;
	snprintf(path, sizeof(path), "/proc/%s/comm", name);
	/* The kernel cuts a name after 15 bytes. */
	if (host_read(&d->host, path, command, sizeof(command)) <= 0 ||
	    strncmp(command, "nvidia-cuda-mps", strlen("nvidia-cuda-mps")) != 0)
		return true;
	switch (is_of_allotd(&d->host, name)) {
	case FACT_YES: return true;
	case FACT_UNKNOWN:
		finding_set_remedy(
			findings_add(
				&d->findings, FINDING_NOTE, "mps",
				"an MPS daemon runs (pid %s); this user cannot see whether allot started it",
				name),
			"run allot doctor as root");
		return false;
	case FACT_NO: break;
	}
	finding_set_remedy(
		findings_add(
			&d->findings, FINDING_WARNING, "mps",
			"an MPS daemon runs (pid %s) that allot did not start: a fault of one client ends the GPU work of all its clients",
			name),
		"unless it is intended: echo quit | nvidia-cuda-mps-control");
	return false;
}

static bool find_plugin(void *data, const char *name)
{
	struct doctor *d = data;
	const char *dot = strrchr(name, '.');

	if (!dot || strcmp(dot, ".sock") || !strncmp(name, "kubelet", 7) ||
	    !strncmp(name, "allot", 5))
		return true;
	if (strcasestr(name, "nvidia") || strcasestr(name, "gpu"))
		finding_set_remedy(
			findings_add(&d->findings, FINDING_WARNING, "device-plugin",
				     "%s/%s: another device plugin may give out the same GPUs",
				     PLUGINS, name),
			"remove it from this node, or run allot on other nodes (nodeSelector of its DaemonSet)");
	return true;
}

static void check_kubelet(struct doctor *d)
{
	if (!host_has(&d->host, "/var/lib/kubelet"))
		return;
	if (host_has(&d->host, PLUGINS "/kubelet.sock"))
		findings_add(&d->findings, FINDING_OK, "kubelet",
			     "takes device plugins at " PLUGINS);
	else
		finding_set_remedy(findings_add(&d->findings, FINDING_WARNING, "kubelet",
						PLUGINS "/kubelet.sock is not there"),
				   "start the kubelet; in a container, mount " PLUGINS);
	host_each(&d->host, PLUGINS, find_plugin, d);
}

void doctor_check_others(struct doctor *d)
{
	host_each(&d->host, "/proc", find_mps, d);
	check_kubelet(d);
}
