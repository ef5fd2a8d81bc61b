/* Checks the device files of MIG instances: the kernel module names them, but nvidia-modprobe or udev must create them. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "cli/doctor/checks.h"

#define CAPS_DIR "/proc/driver/nvidia/capabilities"

struct instances {
	struct doctor *d;
	char dir[PATH_MAX];
	unsigned found;   /* compute instances whose device file exists */
	unsigned missing; /* missing device files of GPU instances and compute instances */
};

static bool check_cap(struct instances *all, const char *dir)
{
	char path[PATH_MAX], text[256], node[64];
	unsigned minor;

	if (snprintf(path, sizeof(path), "%s/access", dir) >= (int)sizeof(path) ||
	    host_read(&all->d->host, path, text, sizeof(text)) <= 0)
		return false;
	const char *line = strstr(text, "DeviceFileMinor:");
	if (!line || sscanf(line, "DeviceFileMinor: %9u", &minor) != 1)
		return false;
	snprintf(node, sizeof(node), "/dev/nvidia-caps/nvidia-cap%u", minor);
	if (host_has(&all->d->host, node))
		return true;
	all->missing++;
	finding_set_remedy(findings_add(&all->d->findings, FINDING_WARNING, "mig-nodes",
					"%s is missing: containers cannot use the MIG instance of %s",
					node, path),
			   "nvidia-modprobe -f %s", path);
	return false;
}

/*
 * Visits the directory all->dir/<name><below>, if `name` begins with `prefix`: one step of a path such as gpu0/mig/gi1/ci0.
 * Checks the device file that the directory's file `access` names, if any, and calls `then` for each entry. For a compute
 * instance (ci0), `then` is NULL, and an existing device file is counted in `found`.
 */
static bool visit(struct instances *all, const char *name, const char *prefix, const char *below,
		  bool (*then)(void *data, const char *name))
{
	struct instances inner = *all;

	if (strncmp(name, prefix, strlen(prefix)) != 0 ||
	    snprintf(inner.dir, sizeof(inner.dir), "%s/%s%s", all->dir, name, below) >=
		    (int)sizeof(inner.dir))
		return true;
	bool exists = check_cap(&inner, inner.dir);
	if (!then)
		inner.found += exists;
	else
		host_each(&all->d->host, inner.dir, then, &inner);
	all->found = inner.found;
	all->missing = inner.missing;
	return true;
}

static bool visit_compute_instance(void *data, const char *name)
{
	return visit(data, name, "ci", "", NULL);
}

static bool visit_gpu_instance(void *data, const char *name)
{
	return visit(data, name, "gi", "", visit_compute_instance);
}

static bool visit_gpu(void *data, const char *name)
{
	return visit(data, name, "gpu", "/mig", visit_gpu_instance);
}

void doctor_check_mig(struct doctor *d)
{
	struct instances all = { .d = d, .dir = CAPS_DIR };

	host_each(&d->host, all.dir, visit_gpu, &all);
	if (all.found && !all.missing)
		findings_add(&d->findings, FINDING_OK, "mig-nodes",
			     "device nodes of %u MIG instances exist", all.found);
}
