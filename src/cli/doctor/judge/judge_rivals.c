#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/doctor/judge/judge.h"

#define MIB (UINT64_C(1) << 20)

/* One row per program. The kernel keeps only the first 15 bytes of a program's name. */
static const struct {
	const char *name, *check;
	enum finding_level level;
	const char *what, *remedy;
} programs[] = {
	{ "nvidia-device-p", "device-plugin", FINDING_WARNING,
	  "NVIDIA's or HAMi's device plugin runs: it hands out the same GPUs, so a GPU may get "
	  "pods of both",
	  "take it off this node (its DaemonSet's nodeSelector), or give allot other nodes" },
	{ "vGPUmonitor", "device-plugin", FINDING_WARNING,
	  "HAMi's monitor runs: it throttles containers that use HAMi's library",
	  "take HAMi's DaemonSet off this node: docs/guide/migrate-from-hami.md" },
	{ "gpu-manager", "device-plugin", FINDING_WARNING,
	  "gpu-manager runs: it hands out the same GPUs",
	  "take its DaemonSet off this node: docs/guide/migrate-from-gpu-manager.md" },
	{ "nvshare-schedul", "device-plugin", FINDING_WARNING,
	  "nvshare's scheduler runs: it holds whole GPUs for one client at a time",
	  "end it, and take its library out of the containers" },
	{ "nvidia-mig-mana", "monitor", FINDING_WARNING,
	  "NVIDIA's MIG manager runs: when it repartitions a GPU, the tenants on that GPU lose it",
	  "leave its label nvidia.com/mig.config as it is while tenants run" },
	{ "dcgm-exporter", "monitor", FINDING_NOTE,
	  "DCGM's exporter runs: with profiling metrics (DCGM_FI_PROF_*) it holds the GPU's "
	  "counters, and "
	  "profilers and allot bench sensors get none",
	  "leave those metrics out of its list, or dcgmi profile --pause while you measure" },
	{ "nv-hostengine", "monitor", FINDING_NOTE,
	  "DCGM's engine runs: while somebody has it watch profiling metrics, profilers and allot "
	  "bench "
	  "sensors get no counters",
	  "dcgmi profile --pause while you measure" },
	{ "nsys", "monitor", FINDING_NOTE,
	  "a profiler runs: the programs that it traces are slower, and the longer GPU time counts as theirs",
	  "" },
	{ "ncu", "monitor", FINDING_NOTE,
	  "a profiler runs that stops the GPU between kernels: other tenants wait meanwhile", "" },
};
#define PROGRAMS (sizeof(programs) / sizeof(*programs))

bool judge_is_rival_process(const char *name)
{
	for (size_t i = 0; i < PROGRAMS; i++)
		if (!strcmp(name, programs[i].name))
			return true;
	return false;
}

static void judge_program(size_t row, const struct facts_rivals *r, struct findings *f)
{
	unsigned count = 0;
	int pid = 0;

	for (unsigned i = 0; i < r->count; i++)
		if (!strcmp(r->process[i].name, programs[row].name) && !count++)
			pid = r->process[i].pid;
	if (count)
		finding_set_remedy(findings_add(f, programs[row].level, programs[row].check,
						"%s (pid %d)", programs[row].what, pid),
				   "%s", programs[row].remedy);
}

void judge_rivals(const struct facts *facts, struct findings *f)
{
	const struct facts_rivals *r = &facts->rivals;

	for (size_t i = 0; i < PROGRAMS; i++)
		judge_program(i, r, f);
	if (r->has_hami_files)
		finding_set_remedy(
			findings_add(
				f, FINDING_NOTE, "hami-files",
				"/usr/local/vgpu exists: HAMi's library is on this machine, and containers made with it still use it"),
			"start those containers again with allot, then remove the directory");
	if (r->has_mps_pipe)
		finding_set_remedy(
			findings_add(
				f, FINDING_NOTE, "mps-pipe",
				"/tmp/nvidia-mps/control exists: CUDA programs that see it become clients of that MPS daemon"),
			"if no MPS daemon runs, remove /tmp/nvidia-mps: until then CUDA programs fail with error 805");
}

static void judge_quotas(const struct facts_tenant *t, struct findings *f)
{
	for (unsigned i = 0; i < t->devices; i++) {
		const struct facts_tenant_device *d = &t->device[i];
		char cap[48] = "";
		if (d->limit_pct < 100)
			snprintf(cap, sizeof(cap), ", at most %.4g %%", d->limit_pct);
		findings_add(f, FINDING_OK, "quota",
			     "GPU %u: %" PRIu64 " of %" PRIu64
			     " MiB used; %.4g %% of its time guaranteed%s",
			     i, d->used_bytes / MIB, d->quota_bytes / MIB, d->cores_pct, cap);
	}
}

static void judge_library(const struct facts_tenant *t, struct findings *f)
{
	if (t->is_preloaded || t->has_shim) {
		findings_add(
			f, FINDING_OK, "preloaded", "%s",
			!t->is_preloaded
				? "libcuda.so.1 here is of allot mirror, and loads liballot.so first"
			: t->is_command ? "liballot.so is in this process (LD_PRELOAD of allot run)"
					: "liballot.so is in this process (/etc/ld.so.preload)");
		return;
	}
	finding_set_remedy(
		findings_add(
			f, FINDING_PROBLEM, "preloaded",
			"liballot.so is not in this process: CUDA programs started like this one "
			"bypass the quota, and the daemon reports, freezes or ends them (setting on_violation)"),
		t->wants_control
			? "was LD_PRELOAD removed from the environment? Start the command with allot run, or the container with allot's device"
			: "CUDA_DISABLE_CONTROL is set; "
			  "remove it from the container, unless the daemon is meant to allow that (allow_disable_control = on)");
}

void judge_tenant(const struct facts *facts, struct findings *f)
{
	const struct facts_tenant *t = &facts->tenant;

	if (!t->is_tenant)
		return;
	if (t->fault[0]) {
		finding_set_remedy(
			findings_add(
				f, FINDING_PROBLEM, "tenant",
				"ALLOT_SOCKET, %s: %s: CUDA programs here wait 30 s and then fail",
				t->socket, t->fault),
			"start allotd; in a container, mount the tenant's directory, not only the socket");
		judge_library(t, f);
		return;
	}
	if (t->is_known && t->is_paused)
		finding_set_remedy(findings_add(f, FINDING_WARNING, "tenant",
						"%s is paused: its GPU work waits (%s answers)",
						t->name, t->socket),
				   "run allot resume %s on the machine", t->name);
	else if (t->is_known)
		findings_add(f, FINDING_OK, "tenant", "%s; %s answers", t->name, t->socket);
	else
		findings_add(f, FINDING_OK, "tenant", "%s answers", t->socket);
	judge_quotas(t, f);
	judge_library(t, f);
}
