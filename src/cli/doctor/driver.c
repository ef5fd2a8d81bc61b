#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/doctor/checks.h"
#include "cli/doctor/gather.h"
#include "cli/doctor/version.h"
#include "cli/probe.h"

#define VERSION_MAX VERSION_TEXT_MAX
#define VENDOR_NVIDIA "0x10de"
#define CLASS_DISPLAY "0x03" /* PCI base class of display controllers, 3D controllers included */

struct pci {
	struct doctor *d;
	unsigned cards;
};

static bool count_card(void *data, const char *name)
{
	struct pci *pci = data;
	char path[PATH_MAX], vendor[16], class[16];

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/vendor", name);
	host_read(&pci->d->host, path, vendor, sizeof(vendor));
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/class", name);
	host_read(&pci->d->host, path, class, sizeof(class));
	pci->cards += !strncmp(vendor, VENDOR_NVIDIA, strlen(VENDOR_NVIDIA)) &&
		      !strncmp(class, CLASS_DISPLAY, strlen(CLASS_DISPLAY));
	return true;
}

/* Returns false if the module is not loaded: then later checks are pointless. */
static bool check_module(struct doctor *d, char version[VERSION_MAX])
{
	struct pci pci = { d, 0 };

	gather_module_version(&d->host, version);
	if (version[0] || host_has(&d->host, "/proc/driver/nvidia/version")) {
		findings_add(&d->findings, FINDING_OK, "driver", "NVIDIA's kernel module %s",
			     version[0] ? version : "of an unknown version");
		return true;
	}
	host_each(&d->host, "/sys/bus/pci/devices", count_card, &pci);
	struct finding *f;
	if (pci.cards) {
		f = findings_add(&d->findings, FINDING_PROBLEM, "driver",
				 "NVIDIA's kernel module is not loaded, and there %s %u GPU%s",
				 pci.cards == 1 ? "is" : "are", pci.cards,
				 pci.cards == 1 ? "" : "s");
		finding_set_remedy(
			f, "modprobe nvidia; or install the driver (580 or newer is tested)");
	} else {
		f = findings_add(&d->findings, FINDING_PROBLEM, "driver",
				 "no NVIDIA GPU on this machine's PCI bus, and no NVIDIA driver");
		finding_set_remedy(f, "without a GPU, try a simulated one: allot run --sim h200");
	}
	return false;
}

static void check_uvm(struct doctor *d)
{
	size_t size;
	cleanup_free char *modules = host_read_all(&d->host, "/proc/modules", &size);

	/* A module built into the kernel is not in /proc/modules, but in /sys/module. */
	if (!modules || strstr(modules, "nvidia_uvm ") ||
	    host_has(&d->host, "/sys/module/nvidia_uvm"))
		return;
	finding_set_remedy(
		findings_add(&d->findings, FINDING_PROBLEM, "nvidia-uvm",
			     "the kernel module is not loaded: CUDA can't start (error 999 or 3)"),
		"modprobe nvidia-uvm; nvidia-modprobe -u -c=0");
}

struct nodes {
	struct doctor *d;
	unsigned found;
};

static bool check_node_of(void *data, const char *address)
{
	struct nodes *nodes = data;
	char path[PATH_MAX], text[1024], node[64];
	unsigned minor;

	snprintf(path, sizeof(path), "/proc/driver/nvidia/gpus/%s/information", address);
	if (host_read(&nodes->d->host, path, text, sizeof(text)) <= 0)
		return true;
	const char *line = strstr(text, "Device Minor:");
	if (!line || sscanf(line, "Device Minor: %u", &minor) != 1)
		return true;
	snprintf(node, sizeof(node), "/dev/nvidia%u", minor);
	if (host_has(&nodes->d->host, node)) {
		nodes->found++;
		return true;
	}
	finding_set_remedy(findings_add(&nodes->d->findings, FINDING_PROBLEM, "device-nodes",
					"%s of the GPU at %s is missing", node, address),
			   "nvidia-modprobe -c %u; in a container: give it that device", minor);
	return true;
}

static void check_nodes(struct doctor *d)
{
	static const char *const common[] = { "/dev/nvidiactl", "/dev/nvidia-uvm" };
	struct nodes nodes = { d, 0 };
	size_t before = d->findings.count;

	for (size_t i = 0; i < sizeof(common) / sizeof(*common); i++) {
		char at[PATH_MAX];
		if (!host_has(&d->host, common[i])) {
			finding_set_remedy(
				findings_add(&d->findings, FINDING_PROBLEM, "device-nodes",
					     "%s is missing", common[i]),
				"nvidia-modprobe -u -c 0; in a container: give it that device");
			continue;
		}
		host_path(&d->host, common[i], at, sizeof(at));
		if (host_is_local(&d->host) && access(at, R_OK | W_OK) < 0)
			finding_set_remedy(findings_add(&d->findings, FINDING_PROBLEM, "device-nodes",
							"%s: %s", common[i], strerror(errno)),
					   "give this user the right to it (chmod, a group, or "
					   "NVreg_DeviceFileMode of the module)");
	}
	host_each(&d->host, "/proc/driver/nvidia/gpus", check_node_of, &nodes);
	if (d->findings.count == before)
		findings_add(&d->findings, FINDING_OK, "device-nodes", "of %u GPU%s", nodes.found,
			     nodes.found == 1 ? "" : "s");
}

/* Writes the version in a name such as libcuda.so.580.65.06; "" if there is none. */
static void version_in(const char *path, char ret[VERSION_MAX])
{
	const char *at = strstr(path, ".so.");

	ret[0] = '\0';
	if (at && strchr(at + strlen(".so."), '.'))
		snprintf(ret, VERSION_MAX, "%s", at + strlen(".so."));
}

static void check_library_of(struct doctor *d, const char *name, const char *check,
			     const char *module_version)
{
	char path[PATH_MAX], real[PATH_MAX], version[VERSION_MAX];

	if (!gather_library(&d->host, name, path)) {
		finding_set_remedy(findings_add(&d->findings, FINDING_PROBLEM, check,
						"the dynamic loader does not find %s", name),
				   "install the driver's libraries and run ldconfig; in a container, "
				   "mount them, or use allot mirror or NVIDIA's container toolkit");
		return;
	}
	host_resolve(&d->host, path, real, sizeof(real));
	if (!host_has(&d->host, real)) {
		finding_set_remedy(findings_add(&d->findings, FINDING_PROBLEM, check,
						"%s is a link to %s, which does not exist", path,
						real),
				   "install the driver's libraries again, and run ldconfig");
		return;
	}
	version_in(real, version);
	if (version[0] && module_version[0] && strcmp(version, module_version)) {
		finding_set_remedy(
			findings_add(&d->findings, FINDING_PROBLEM, check,
				     "%s has version %s, but the kernel module has %s: CUDA can't "
				     "start (error 803)",
				     real, version, module_version),
			"reboot, or unload and load NVIDIA's modules, after an upgrade of the "
			"driver");
		return;
	}
	findings_add(&d->findings, FINDING_OK, check, "%s", real);
}

bool doctor_is_simulated(const struct doctor *d)
{
	const char *socket = getenv("ALLOT_SIM_SOCKET");

	return d->target.sim_spec ||
	       (host_is_local(&d->host) && getenv("ALLOT_SOCKET") && socket && *socket);
}

void doctor_check_driver(struct doctor *d)
{
	char version[VERSION_MAX];
	struct error err;

	if (d->target.sim_spec && probe_sim(d->target.sim_spec, &err) < 0) {
		findings_add(&d->findings, FINDING_PROBLEM, "driver", "%s", err.text);
		return;
	}
	if (d->target.sim_spec) {
		findings_add(&d->findings, FINDING_OK, "driver",
			     "not checked: --sim asks for a simulated GPU, %s", d->target.sim_spec);
		return;
	}
	if (doctor_is_simulated(d)) {
		findings_add(&d->findings, FINDING_OK, "driver",
			     "not checked: this tenant has a simulated GPU (ALLOT_SIM_SOCKET)");
		return;
	}
	cleanup_json json_t *hello = gather_hello(d);
	if (json_is_true(json_object_get(hello, "simulated"))) {
		findings_add(&d->findings, FINDING_OK, "driver",
			     "not checked: the daemon's GPUs are simulated");
		return;
	}
	if (!check_module(d, version))
		return;
	check_uvm(d);
	check_nodes(d);
	doctor_check_mig(d);
	check_library_of(d, "libcuda.so.1", "libcuda", version);
	check_library_of(d, "libnvidia-ml.so.1", "nvml", version);
	if (host_is_local(&d->host) && probe_gpu(&err) < 0)
		findings_add(&d->findings, FINDING_PROBLEM, "gpus", "%s", err.text);
}
