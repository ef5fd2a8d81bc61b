#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "abi/shm/gvisor.h"
#include "cli/doctor/checks.h"

/* the first long-term release of Linux with pidfds that poll() accepts (since 5.3) and with F_SEAL_FUTURE_WRITE (since 5.1) */
#define KERNEL_LEAST_MAJOR 5
#define KERNEL_LEAST_MINOR 4
#define INITIAL_PID_NAMESPACE "pid:[4026531836]" /* PROC_PID_INIT_INO, include/linux/proc_ns.h */
#define DESCRIPTORS_WANTED 65536

static void check_kernel(struct doctor *d)
{
	char release[128], version[512];
	int major = 0, minor = 0;

	/* Test for gVisor first: older versions have no /proc/sys/kernel/osrelease, or claim to be Linux 4.4.0. */
	if (host_read(&d->host, "/proc/version", version, sizeof(version)) > 0 &&
	    gvisor_is_kernel(version)) {
		finding_set_remedy(
			findings_add(
				&d->findings, FINDING_PROBLEM, "kernel",
				"gVisor (runsc): allot cannot share a GPU in it, so CUDA programs of a tenant fail at cuInit"),
			"run the container with runc: in Kubernetes, remove runtimeClassName, or name a RuntimeClass of runc");
		return;
	}
	if (host_read(&d->host, "/proc/sys/kernel/osrelease", release, sizeof(release)) <= 0 ||
	    sscanf(release, "%d.%d", &major, &minor) != 2) {
		struct finding *f = findings_add(&d->findings, FINDING_PROBLEM, "kernel",
						 "the kernel's version cannot be read from /proc");
		finding_set_remedy(f, "mount -t proc proc /proc");
		return;
	}
	release[strcspn(release, "\n")] = '\0';
	if (major > KERNEL_LEAST_MAJOR ||
	    (major == KERNEL_LEAST_MAJOR && minor >= KERNEL_LEAST_MINOR)) {
		findings_add(&d->findings, FINDING_OK, "kernel", "Linux %s", release);
		return;
	}
	finding_set_remedy(
		findings_add(&d->findings, FINDING_PROBLEM, "kernel",
			     "Linux %s is too old: it has no pidfds or sealed memory files", release),
		"Linux %d.%d or newer is needed", KERNEL_LEAST_MAJOR, KERNEL_LEAST_MINOR);
}

static void check_pid_namespace(struct doctor *d)
{
	char text[64];
	ssize_t n = readlink("/proc/self/ns/pid", text, sizeof(text) - 1);

	text[n < 0 ? 0 : n] = '\0';
	if (!strcmp(text, INITIAL_PID_NAMESPACE)) {
		findings_add(&d->findings, FINDING_OK, "pid-namespace", "the machine's own");
		return;
	}
	finding_set_remedy(
		findings_add(&d->findings, FINDING_WARNING, "pid-namespace",
			     "%s: a daemon started here cannot see the processes outside of it",
			     n < 0 ? "the process's pid namespace can't be read"
				   : "this process is in a pid namespace of its own"),
		"run allotd in the machine's pid namespace: hostPID: true in Kubernetes, --pid host in podman and docker. Tenants do not need it");
}

static void check_descriptors(struct doctor *d)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	if (limit.rlim_max == RLIM_INFINITY || limit.rlim_max >= DESCRIPTORS_WANTED) {
		findings_add(&d->findings, FINDING_OK, "descriptors",
			     "a process may open up to %" PRIuMAX " files",
			     (uintmax_t)limit.rlim_max);
		return;
	}
	finding_set_remedy(findings_add(&d->findings, FINDING_NOTE, "descriptors",
					"a process may open up to %" PRIuMAX
					" files: enough for some thousand processes that share a GPU",
					(uintmax_t)limit.rlim_max),
			   "LimitNOFILE=1048576 for the daemon's service, where there are more");
}

/* Ends the search at the first cgroup with a freezer's file. In cgroup version 2, every cgroup but the root has one. */
static bool find_freeze_file(void *data, const char *name)
{
	struct doctor *d = data;
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "/sys/fs/cgroup/%s/cgroup.freeze", name);
	if (!host_has(&d->host, path))
		return true;
	findings_add(&d->findings, FINDING_OK, "freezer", "cgroup version 2");
	return false;
}

static void check_cgroups(struct doctor *d)
{
	bool is_v2 = host_has(&d->host, "/sys/fs/cgroup/cgroup.controllers");
	bool is_v1 = host_has(&d->host, "/sys/fs/cgroup/freezer");
	bool is_hybrid = host_has(&d->host, "/sys/fs/cgroup/unified/cgroup.controllers");
	size_t before = d->findings.count + 1;

	if (is_v2 || is_v1 || is_hybrid)
		findings_add(&d->findings, FINDING_OK, "cgroups", "%s",
			     is_v2       ? "version 2"
			     : is_hybrid ? "version 1, and version 2 beside it"
					 : "version 1");
	else
		finding_set_remedy(
			findings_add(
				&d->findings, FINDING_WARNING, "cgroups",
				"no cgroups are mounted at /sys/fs/cgroup: containers cannot be distinguished"),
			"mount cgroup2 at /sys/fs/cgroup; in a container, mount the machine's");
	if (is_v1)
		findings_add(&d->findings, FINDING_OK, "freezer", "cgroup version 1");
	else if (is_v2)
		host_each(&d->host, "/sys/fs/cgroup", find_freeze_file, d);
	if (d->findings.count == before)
		finding_set_remedy(
			findings_add(
				&d->findings, FINDING_WARNING, "freezer",
				"no cgroup freezer: freezer = on cannot hold back containers that do not use the allot library"),
			"use Linux 5.2 or newer with cgroup version 2");
}

void doctor_check_system(struct doctor *d)
{
	check_kernel(d);
	if (host_is_local(&d->host)) {
		check_pid_namespace(d);
		check_descriptors(d);
	}
	check_cgroups(d);
}
