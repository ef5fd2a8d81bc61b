#include <stdio.h>
#include <string.h>

#include "cli/doctor/judge/judge.h"

#define PLUGINS "/var/lib/kubelet/device-plugins"

void judge_cgroup_rights(const struct facts *facts, struct findings *f)
{
	const struct facts_cgroup *c = &facts->cgroup;

	if (!c->has_any)
		return; /* check_cgroups() in system.c reports it */
	if (c->is_read_only)
		finding_set_remedy(
			findings_add(
				f, FINDING_WARNING, "cgroup-rights",
				"/sys/fs/cgroup is mounted read-only: containers cannot be frozen, nor charged for swapped memory"),
			"if the daemon runs in a container, mount the machine's /sys/fs/cgroup writable; tenants do not need it");
	else if (c->may_write == FACT_NO)
		findings_add(f, FINDING_NOTE, "cgroup-rights",
			     "this user may not freeze containers; a daemon that runs as root may");
	else if (c->may_write == FACT_YES)
		findings_add(f, FINDING_OK, "cgroup-rights", "containers can be frozen");
}

/* Returns for example 1034 for "v1.34.1"; 0 if there is no version. */
static unsigned version_number(const char *text)
{
	unsigned major = 0, minor = 0;

	text += strcspn(text, "0123456789");
	return sscanf(text, "%u.%u", &major, &minor) == 2 ? 1000 * major + minor : 0;
}

#define KUBELET_LEAST 1020 /* version 1.20, the first with pod-resources v1 */

void judge_kubelet(const struct facts *facts, struct findings *f)
{
	const struct facts_kubelet *k = &facts->kubelet;
	unsigned version = version_number(k->version);

	if (!k->is_there)
		return;
	if (k->answers == FACT_NO)
		finding_set_remedy(
			findings_add(
				f, FINDING_WARNING, "kubelet-answers",
				PLUGINS
				"/kubelet.sock: nothing listens there: the kubelet does not run"),
			"check systemctl status kubelet; when it starts again, allotd registers by itself");
	if (version && version < KUBELET_LEAST)
		finding_set_remedy(
			findings_add(
				f, FINDING_PROBLEM, "kubelet-version",
				"%s: this kubelet does not report which pod has which device (pod-resources v1)",
				k->version),
			"Kubernetes 1.20 or newer is needed; 1.34 is what allot is tested with");
	else if (version)
		findings_add(f, FINDING_OK, "kubelet-version", "%s", k->version);
	if (!k->has_our_socket && !k->plugin_wanted)
		return;
	if (!k->has_our_socket || k->we_answer == FACT_NO)
		finding_set_remedy(
			findings_add(f, FINDING_PROBLEM, "plugin",
				     "kube_plugin is on, but %s: pods that request GPUs wait",
				     k->has_our_socket
					     ? "nothing listens at allotd's socket below " PLUGINS
					     : "allotd has no socket below " PLUGINS),
			"start allotd, as root, with kube_plugin_dir = " PLUGINS
			"; in a pod, mount that directory (not the socket)");
	else if (k->registered == FACT_NO)
		finding_set_remedy(
			findings_add(
				f, FINDING_PROBLEM, "plugin",
				"the kubelet has not registered the resource %s: pods that request it wait",
				k->resource),
			"look for 'kubelet' in allotd's log; usual reasons: another plugin of the same resource, or SELinux");
	else
		findings_add(f, FINDING_OK, "plugin", "%s%s", k->resource,
			     k->registered == FACT_YES ? " is registered with the kubelet"
						       : ": allotd listens for the kubelet");
}

/* The oldest version that supports CDI with a setting (`able`) and without one (`by_itself`), by version_number(). */
static const struct {
	const char *name;
	unsigned able, by_itself;
	const char *remedy;
} engines[RUNTIMES] = {
	[RUNTIME_CONTAINERD] = { "containerd", 1007, 2000,
				 "enable_cdi = true in /etc/containerd/config.toml, below "
				 "[plugins.\"io.containerd.grpc.v1.cri\"], and systemctl restart "
				 "containerd" },
	[RUNTIME_CRIO] = { "CRI-O", 1023, 1023, "install CRI-O 1.23 or newer" },
	[RUNTIME_DOCKER] = { "docker", 25000, 28002,
			     "{\"features\": {\"cdi\": true}} in /etc/docker/daemon.json, and "
			     "systemctl "
			     "restart docker" },
	[RUNTIME_PODMAN] = { "podman", 4001, 4001, "install podman 4.1 or newer" },
};

static void judge_runtime(enum runtime which, const struct facts_runtime *r, struct findings *f)
{
	const char *name = engines[which].name;
	unsigned version = version_number(r->version);
	const char *space = r->version[0] ? " " : "";

	if (!r->is_there)
		return;
	if (version && version < engines[which].able)
		finding_set_remedy(
			findings_add(
				f, FINDING_WARNING, "runtime",
				"%s %s does not support CDI: allot.dev/gpu devices cannot be used with it",
				name, r->version),
			"install %s %u.%u or newer; the device plugin (kube_plugin) works without CDI",
			name, engines[which].able / 1000, engines[which].able % 1000);
	else if (r->says_cdi == FACT_NO)
		finding_set_remedy(findings_add(f, FINDING_WARNING, "runtime",
						"%s%s%s: CDI is off in its settings", name, space,
						r->version),
				   "%s", engines[which].remedy);
	else if (r->says_cdi == FACT_YES || (version && version >= engines[which].by_itself))
		findings_add(f, FINDING_OK, "runtime", "%s%s%s, with CDI", name, space, r->version);
	else if (version)
		finding_set_remedy(
			findings_add(
				f, FINDING_WARNING, "runtime",
				"%s %s supports CDI devices, but they are not enabled in its settings",
				name, r->version),
			"%s", engines[which].remedy);
	else
		findings_add(f, FINDING_NOTE, "runtime", "%s; not known whether CDI is enabled",
			     name);
}

void judge_runtimes(const struct facts *facts, struct findings *f)
{
	bool has_any = false;

	for (unsigned i = 0; i < RUNTIMES; i++) {
		has_any |= facts->runtime[i].is_there;
		judge_runtime((enum runtime)i, &facts->runtime[i], f);
	}
	if (!has_any && facts->kubelet.is_there)
		finding_set_remedy(
			findings_add(
				f, FINDING_WARNING, "runtime",
				"a kubelet runs, but neither containerd nor CRI-O is visible here"),
			"in a container, mount /run/containerd or /run/crio to have it checked");
}

void judge_specs(const struct facts *facts, struct findings *f)
{
	for (unsigned i = 0; i < facts->specs; i++) {
		const struct facts_spec *s = &facts->spec[i];
		if (s->fault[0])
			finding_set_remedy(
				findings_add(
					f, FINDING_WARNING, "cdi",
					"%s: %s: engines ignore this CDI file, and some then refuse all CDI devices",
					s->path, s->fault),
				s->is_ours
					? "remove its device by allot cdi remove, and create that "
					  "device again; or remove the file"
					: "generate it again (nvidia-ctk cdi generate), or remove the file");
		else if (s->missing[0])
			finding_set_remedy(
				findings_add(
					f, FINDING_WARNING, "cdi",
					"%s mounts %s, which does not exist: containers with this device do not start",
					s->path, s->missing),
				s->is_ours
					? "allot cdi list shows the devices; create this one again, or remove the file"
					: "generate it again (nvidia-ctk cdi generate): the driver has changed since");
		else
			findings_add(f, FINDING_NOTE, "cdi", "%s: %u device%s", s->path, s->devices,
				     s->devices == 1 ? "" : "s");
	}
}

static void judge_mirror(const struct facts_injection *in, struct findings *f)
{
	if (!in->has_mirror_library)
		finding_set_remedy(
			findings_add(
				f, FINDING_PROBLEM, "injection",
				"container_driver: %s has no lib64/liballot.so: containers are refused",
				in->mirror),
			"run allot mirror %s as root: it copies the driver and allot's library there",
			in->mirror);
	else if (in->mirror_driver[0] && in->module[0] && strcmp(in->mirror_driver, in->module) != 0)
		finding_set_remedy(
			findings_add(f, FINDING_PROBLEM, "injection",
				     "container_driver: %s has driver %s but the kernel module is %s: "
				     "CUDA cannot start in containers (error 803)",
				     in->mirror, in->mirror_driver, in->module),
			"run allot mirror %s again; running containers keep the old driver",
			in->mirror);
	else if (in->is_same_library == FACT_NO)
		finding_set_remedy(
			findings_add(
				f, FINDING_WARNING, "injection",
				"container_driver: %s has another liballot.so than the installed one",
				in->mirror),
			"run allot mirror %s again after an upgrade of allot", in->mirror);
	else
		findings_add(
			f, FINDING_OK, "injection",
			"containers get the driver and allot's library from %s, which allot mirror made",
			in->mirror);
}

void judge_injection(const struct facts *facts, struct findings *f)
{
	const struct facts_injection *in = &facts->injection;
	bool has_engine = false;

	for (unsigned i = 0; i < RUNTIMES; i++)
		has_engine |= facts->runtime[i].is_there;
	if (in->is_simulated)
		return;
	if (in->is_mirror)
		judge_mirror(in, f);
	else if (in->has_toolkit)
		findings_add(
			f, FINDING_OK, "injection",
			"containers get the driver from NVIDIA's container toolkit, and allot's library by /etc/ld.so.preload");
	else if (has_engine)
		finding_set_remedy(
			findings_add(f, FINDING_WARNING, "injection",
				     "containers would get no driver: NVIDIA's container toolkit is not "
				     "installed, and container_driver names no copy of the driver"),
			"install nvidia-container-toolkit; or copy the driver by allot mirror DIR, "
			"and set container_driver = DIR in /etc/allot/allotd.conf");
}
