/* What the doctor makes of facts: each fault put before its judge, and what is well. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "cli/doctor/judge/judge.h"
#include "cli/doctor/version.h"

#define NOW INT64_C(1790000000) /* 2026-09-21 */
#define DAY INT64_C(86400)
#define MIB (UINT64_C(1) << 20)

/*
 * One row a case: what is set beyond the facts of a machine with nothing on it, and the finding that there is then: of a
 * level, by a check's name, with these words in it; "" as the name: none at all.
 */
struct row {
	const char *what;
	void (*put)(struct facts *facts);
	judge judge;
	enum finding_level level;
	const char *check, *words;
};

static void assert_row(const struct row *row)
{
	struct facts facts = { .clock.now_s = NOW };
	struct findings found = { 0 };
	const struct finding *it = NULL;

	row->put(&facts);
	row->judge(&facts, &found);
	for (size_t i = 0; i < found.count; i++)
		if (!strcmp(found.list[i].name, row->check) && strstr(found.list[i].what, row->words))
			it = &found.list[i];
	if (!row->check[0] && found.count)
		fail_msg("%s: %s: %s", row->what, found.list[0].name, found.list[0].what);
	if (row->check[0] && !it)
		fail_msg("%s: %s", row->what, found.count ? found.list[0].what : "nothing found");
	if (it && it->level != row->level)
		fail_msg("%s: level %d", row->what, (int)it->level);
	/* Whoever is told of a fault is told what to do. */
	for (size_t i = 0; i < found.count; i++)
		if (found.list[i].level >= FINDING_WARNING && !found.list[i].remedy[0])
			fail_msg("%s: no remedy: %s", row->what, found.list[i].what);
	findings_free(&found);
}

#define PUT(name, ...) \
	static void name(struct facts *f) \
	{ \
		__VA_ARGS__; \
	}
#define SET_TEXT(field, text) strcpy(field, text)

PUT(nothing, (void)f)

/* ---- cgroups ---- */

PUT(cgroup_well, f->cgroup = (struct facts_cgroup){ .has_any = true, .may_write = FACT_YES })
PUT(cgroup_read_only, f->cgroup = (struct facts_cgroup){ .has_any = true, .is_read_only = true })
PUT(cgroup_of_root, f->cgroup = (struct facts_cgroup){ .has_any = true, .may_write = FACT_NO })

/* ---- the kubelet ---- */

static void kubelet(struct facts *f)
{
	f->kubelet = (struct facts_kubelet){ .is_there = true,
					     .plugin_wanted = true,
					     .answers = FACT_YES,
					     .has_our_socket = true,
					     .we_answer = FACT_YES,
					     .registered = FACT_YES,
					     .resource = "nvidia.com/gpu",
					     .version = "1.34.1" };
}
PUT(kubelet_down, kubelet(f); f->kubelet.answers = FACT_NO)
PUT(kubelet_old, kubelet(f); SET_TEXT(f->kubelet.version, "v1.19.16"))
PUT(plugin_off, kubelet(f); f->kubelet.plugin_wanted = f->kubelet.has_our_socket = false)
PUT(plugin_without_socket, kubelet(f); f->kubelet.has_our_socket = false)
PUT(plugin_dead, kubelet(f); f->kubelet.we_answer = FACT_NO)
PUT(plugin_unregistered, kubelet(f); f->kubelet.registered = FACT_NO)
PUT(plugin_from_afar, kubelet(f); f->kubelet.registered = f->kubelet.we_answer = FACT_UNKNOWN)

/* ---- engines ---- */

static void engine(struct facts *f, enum runtime which, const char *version, enum fact says)
{
	f->runtime[which] = (struct facts_runtime){ .is_there = true, .says_cdi = says };
	SET_TEXT(f->runtime[which].version, version);
}
PUT(containerd_2, engine(f, RUNTIME_CONTAINERD, "2.0.3", FACT_UNKNOWN))
PUT(containerd_2_off, engine(f, RUNTIME_CONTAINERD, "2.0.3", FACT_NO))
PUT(containerd_17, engine(f, RUNTIME_CONTAINERD, "1.7.24", FACT_UNKNOWN))
PUT(containerd_17_on, engine(f, RUNTIME_CONTAINERD, "1.7.24", FACT_YES))
PUT(containerd_16, engine(f, RUNTIME_CONTAINERD, "1.6.20", FACT_YES))
PUT(containerd_seen, engine(f, RUNTIME_CONTAINERD, "", FACT_UNKNOWN))
PUT(docker_27, engine(f, RUNTIME_DOCKER, "27.5.1", FACT_UNKNOWN))
PUT(docker_27_on, engine(f, RUNTIME_DOCKER, "27.5.1", FACT_YES))
PUT(docker_29, engine(f, RUNTIME_DOCKER, "29.0.1", FACT_UNKNOWN))
PUT(docker_24, engine(f, RUNTIME_DOCKER, "24.0.7", FACT_UNKNOWN))
PUT(podman_4, engine(f, RUNTIME_PODMAN, "4.3.1", FACT_UNKNOWN))
PUT(podman_3, engine(f, RUNTIME_PODMAN, "3.4.4", FACT_UNKNOWN))
PUT(crio, engine(f, RUNTIME_CRIO, "1.31.0", FACT_UNKNOWN))
PUT(no_engine, f->kubelet.is_there = true)

/* ---- CDI ---- */

static void spec(struct facts *f, bool is_ours)
{
	f->specs = 1;
	f->spec[0] =
		(struct facts_spec){ .path = "/etc/cdi/x.json", .is_ours = is_ours, .devices = 2 };
}
PUT(spec_well, spec(f, true))
PUT(spec_torn, spec(f, true); SET_TEXT(f->spec[0].fault, "line 1: '}' expected"))
PUT(spec_stale, spec(f, false); SET_TEXT(f->spec[0].missing, "/usr/lib/libcuda.so.550"))

/* ---- injection ---- */

PUT(toolkit, engine(f, RUNTIME_PODMAN, "4.3.1", FACT_UNKNOWN); f->injection.has_toolkit = true)
PUT(no_way, engine(f, RUNTIME_PODMAN, "4.3.1", FACT_UNKNOWN))
PUT(no_way_simulated, engine(f, RUNTIME_PODMAN, "4.3.1", FACT_UNKNOWN);
    f->injection.is_simulated = true)
static void mirror(struct facts *f)
{
	f->injection = (struct facts_injection){ .is_mirror = true,
						 .mirror = "/srv/mirror",
						 .has_mirror_library = true,
						 .is_same_library = FACT_YES,
						 .mirror_driver = "580.65.06",
						 .module = "580.65.06" };
}
PUT(mirror_empty, mirror(f); f->injection.has_mirror_library = false)
PUT(mirror_old, mirror(f); SET_TEXT(f->injection.module, "580.82.07"))
PUT(mirror_other, mirror(f); f->injection.is_same_library = FACT_NO)

/* ---- certificates ---- */

static void certificate(struct facts *f)
{
	f->certificates = 1;
	f->certificate[0] = (struct facts_certificate){ .path = "/etc/allot/tls.crt",
							.whose = "scheduler",
							.setting = "tls_certificate",
							.from_s = NOW - DAY,
							.until_s = NOW + 90 * DAY,
							.names = "allot-scheduler.allot-system.svc",
							.has_key = true };
}
#define C (f->certificate[0])
PUT(certificate_expired, certificate(f); C.until_s = NOW)
PUT(certificate_ends, certificate(f); C.until_s = NOW + 13 * DAY)
PUT(certificate_future, certificate(f); C.from_s = NOW + 1)
PUT(certificate_nameless, certificate(f); C.names[0] = '\0')
PUT(certificate_misnamed, certificate(f); SET_TEXT(C.names, "gpu.example.org a.svcx"))
PUT(certificate_of_metrics, certificate(f); SET_TEXT(C.whose, "metrics");
    SET_TEXT(C.names, "gpu.example.org"))
PUT(certificate_keyless, certificate(f); C.has_key = false)
PUT(certificate_gone, certificate(f); SET_TEXT(C.fault, "does not exist"))

/* ---- the clock, versions ---- */

PUT(clock_well, f->clock.is_synced = FACT_YES)
PUT(clock_alone, f->clock.is_synced = FACT_NO)
PUT(clock_forward, f->clock.has_step = true; f->clock.step_s = 3600)
PUT(clock_back, f->clock.has_step = true; f->clock.step_s = -61)
PUT(clock_slewed, f->clock.has_step = true; f->clock.step_s = 59)
PUT(clock_unset, f->clock.now_s = 5)
PUT(driver_new, SET_TEXT(f->versions.daemon_driver, "580.1"); SET_TEXT(f->versions.module, "580.2"))
PUT(driver_same, SET_TEXT(f->versions.daemon_driver, "580.1"); SET_TEXT(f->versions.module, "580.1"))
PUT(driver_simulated, driver_new(f); f->versions.is_simulated = true)

/* ---- the cluster ---- */

static void taint(struct facts *f, const char *key, const char *effect)
{
	f->cluster.is_asked = true;
	f->cluster.taints = 1;
	SET_TEXT(f->cluster.node, "gpu-1");
	SET_TEXT(f->cluster.taint[0].key, key);
	SET_TEXT(f->cluster.taint[0].effect, effect);
}
PUT(node_well, taint(f, "x", "NoSchedule"); f->cluster.taints = 0)
PUT(node_cordoned, node_well(f); f->cluster.is_cordoned = true)
PUT(node_unknown, node_well(f); SET_TEXT(f->cluster.fault, "nodes \"gpu-1\" not found"))
PUT(taint_of_gpus, taint(f, "nvidia.com/gpu", "NoSchedule");
    SET_TEXT(f->cluster.taint[0].value, "present"))
PUT(taint_of_a_fault, taint(f, "node.kubernetes.io/disk-pressure", "NoSchedule"))
PUT(taint_mild, taint(f, "spot", "PreferNoSchedule"))

/* ---- rivals ---- */

static void process(struct facts *f, const char *name)
{
	struct facts_process *p = &f->rivals.process[f->rivals.count++];
	SET_TEXT(p->name, name);
	p->pid = 4711 + (int)f->rivals.count;
}
PUT(plugin_of_nvidia, process(f, "sh"); process(f, "nvidia-device-p"); process(f, "nvidia-device-p"))
PUT(monitor_of_hami, process(f, "vGPUmonitor"))
PUT(gpu_manager, process(f, "gpu-manager"))
PUT(dcgm, process(f, "dcgm-exporter"))
PUT(hami_files, f->rivals.has_hami_files = true)
PUT(mps_pipe, f->rivals.has_mps_pipe = true)

/* ---- in a tenant ---- */

static void tenant(struct facts *f)
{
	f->tenant = (struct facts_tenant){ .is_tenant = true,
					   .socket = "/run/allot/tenant/allot.sock",
					   .is_known = true,
					   .name = "web",
					   .devices = 1,
					   .device = { { 4096 * MIB, 100 * MIB, 30, 60 } },
					   .is_preloaded = true,
					   .wants_control = true };
}
PUT(tenant_paused, tenant(f); f->tenant.is_paused = true)
PUT(tenant_of_old_daemon, tenant(f); f->tenant.is_known = false; f->tenant.devices = 0)
PUT(tenant_alone, tenant(f); SET_TEXT(f->tenant.fault, "Connection refused"))
PUT(tenant_around, tenant(f); f->tenant.is_preloaded = false)
PUT(tenant_by_mirror, tenant_around(f); f->tenant.has_shim = true)
PUT(tenant_uncontrolled, tenant_around(f); f->tenant.wants_control = false)

PUT(dra, f->dra = ((struct facts_dra){ .is_wanted = true,
				       .has_socket = FACT_YES,
				       .we_answer = FACT_YES,
				       .is_known = true,
				       .is_registered = true,
				       .is_asked = true,
				       .has_api = true,
				       .has_class = FACT_YES,
				       .devices = 2,
				       .is_shared = true }))
PUT(dra_from_afar, dra(f); f->dra.is_known = f->dra.is_asked = false;
    f->dra.we_answer = FACT_UNKNOWN)
PUT(dra_without_socket, dra(f); f->dra.has_socket = FACT_NO; f->dra.we_answer = FACT_UNKNOWN)
PUT(dra_dead, dra(f); f->dra.we_answer = FACT_NO)
PUT(dra_unregistered, dra(f); f->dra.is_registered = false)
PUT(dra_old, dra(f); f->dra.has_api = false)
PUT(dra_unpublished, dra(f); f->dra.devices = 0)
PUT(dra_whole, dra(f); f->dra.is_shared = false)
PUT(dra_tainted, dra(f); f->dra.tainted = 1)
PUT(dra_without_rights, dra(f); SET_TEXT(f->dra.slices_fault, "403: no"); f->dra.devices = 0)
PUT(dra_without_claims, dra(f); SET_TEXT(f->dra.claims_fault, "403: no"))
PUT(dra_without_class, dra(f); f->dra.has_class = FACT_NO)

#define OK FINDING_OK
#define NOTE FINDING_NOTE
#define WARNING FINDING_WARNING
#define PROBLEM FINDING_PROBLEM
#define ROW(put, judge, level, check, words) \
	{ \
#put, put, judge, level, check, words \
	}

static const struct row rows[] = {
	ROW(nothing, judge_cgroup_rights, OK, "", ""),
	ROW(cgroup_well, judge_cgroup_rights, OK, "cgroup-rights", "can be frozen"),
	ROW(cgroup_read_only, judge_cgroup_rights, WARNING, "cgroup-rights", "read-only"),
	ROW(cgroup_of_root, judge_cgroup_rights, NOTE, "cgroup-rights", "this user may not"),

	ROW(nothing, judge_kubelet, OK, "", ""),
	ROW(kubelet, judge_kubelet, OK, "plugin", "nvidia.com/gpu is registered"),
	ROW(kubelet, judge_kubelet, OK, "kubelet-version", "1.34.1"),
	ROW(kubelet_down, judge_kubelet, WARNING, "kubelet-answers", "nothing listens"),
	ROW(kubelet_old, judge_kubelet, PROBLEM, "kubelet-version", "v1.19.16"),
	ROW(plugin_off, judge_kubelet, OK, "kubelet-version", "1.34.1"),
	ROW(plugin_without_socket, judge_kubelet, PROBLEM, "plugin", "allotd has no socket"),
	ROW(plugin_dead, judge_kubelet, PROBLEM, "plugin", "nothing listens at allotd's socket"),
	ROW(plugin_unregistered, judge_kubelet, PROBLEM, "plugin",
	    "has not registered the resource nvidia.com/gpu"),
	ROW(plugin_from_afar, judge_kubelet, OK, "plugin", "listens for the kubelet"),

	ROW(nothing, judge_dra, OK, "", ""),
	ROW(dra, judge_dra, OK, "dra", "gpu.allot.dev is registered with the kubelet"),
	ROW(dra, judge_dra, OK, "dra-slice", "2 GPUs in ResourceSlices"),
	ROW(dra_from_afar, judge_dra, OK, "dra", "allotd listens for the kubelet"),
	ROW(dra_without_socket, judge_dra, PROBLEM, "dra", "there is no socket of gpu.allot.dev"),
	ROW(dra_dead, judge_dra, PROBLEM, "dra", "no process listens at the socket"),
	ROW(dra_unregistered, judge_dra, PROBLEM, "dra", "has not registered gpu.allot.dev"),
	ROW(dra_old, judge_dra, PROBLEM, "dra-slice", "knows no resource.k8s.io/v1"),
	ROW(dra_unpublished, judge_dra, PROBLEM, "dra-slice", "no ResourceSlice lists"),
	ROW(dra_whole, judge_dra, WARNING, "dra-slice", "but a claim gets a whole GPU, never a part"),
	ROW(dra_tainted, judge_dra, NOTE, "dra-slice", "1 with a taint"),
	ROW(dra_without_rights, judge_dra, WARNING, "dra-rights", "ResourceSlices can't be read"),
	ROW(dra_without_claims, judge_dra, WARNING, "dra-rights", "ResourceClaims can't be read"),
	ROW(dra_without_class, judge_dra, WARNING, "dra-class", "no DeviceClass gpu.allot.dev"),

	ROW(nothing, judge_runtimes, OK, "", ""),
	ROW(no_engine, judge_runtimes, WARNING, "runtime", "neither containerd nor CRI-O"),
	ROW(containerd_2, judge_runtimes, OK, "runtime", "containerd 2.0.3, with CDI"),
	ROW(containerd_2_off, judge_runtimes, WARNING, "runtime", "containerd 2.0.3: CDI is off"),
	ROW(containerd_17, judge_runtimes, WARNING, "runtime", "not enabled in its settings"),
	ROW(containerd_17_on, judge_runtimes, OK, "runtime", "with CDI"),
	ROW(containerd_16, judge_runtimes, WARNING, "runtime", "does not support CDI"),
	ROW(containerd_seen, judge_runtimes, NOTE, "runtime", "not known whether CDI"),
	ROW(docker_24, judge_runtimes, WARNING, "runtime", "docker 24.0.7 does not support CDI"),
	ROW(docker_27, judge_runtimes, WARNING, "runtime", "not enabled in its settings"),
	ROW(docker_27_on, judge_runtimes, OK, "runtime", "docker 27.5.1, with CDI"),
	ROW(docker_29, judge_runtimes, OK, "runtime", "with CDI"),
	ROW(podman_4, judge_runtimes, OK, "runtime", "podman 4.3.1, with CDI"),
	ROW(podman_3, judge_runtimes, WARNING, "runtime", "does not support CDI"),
	ROW(crio, judge_runtimes, OK, "runtime", "CRI-O 1.31.0, with CDI"),

	ROW(nothing, judge_specs, OK, "", ""),
	ROW(spec_well, judge_specs, NOTE, "cdi", "/etc/cdi/x.json: 2 devices"),
	ROW(spec_torn, judge_specs, WARNING, "cdi", "'}' expected"),
	ROW(spec_stale, judge_specs, WARNING, "cdi", "libcuda.so.550, which does not exist"),

	ROW(nothing, judge_injection, OK, "", ""),
	ROW(toolkit, judge_injection, OK, "injection", "toolkit"),
	ROW(no_way, judge_injection, WARNING, "injection", "would get no driver"),
	ROW(no_way_simulated, judge_injection, OK, "", ""),
	ROW(mirror, judge_injection, OK, "injection", "/srv/mirror"),
	ROW(mirror_empty, judge_injection, PROBLEM, "injection", "has no lib64/liballot.so"),
	ROW(mirror_old, judge_injection, PROBLEM, "injection",
	    "580.65.06 but the kernel module is 580.82.07"),
	ROW(mirror_other, judge_injection, WARNING, "injection", "another liballot.so"),

	ROW(nothing, judge_certificates, OK, "", ""),
	ROW(certificate, judge_certificates, OK, "certificate", "until 2026-12-20"),
	ROW(certificate_expired, judge_certificates, PROBLEM, "certificate", "expired on 2026-09-21"),
	ROW(certificate_ends, judge_certificates, WARNING, "certificate", "in 13 days"),
	ROW(certificate_future, judge_certificates, PROBLEM, "certificate", "not valid before"),
	ROW(certificate_nameless, judge_certificates, WARNING, "certificate", "names no server"),
	ROW(certificate_misnamed, judge_certificates, WARNING, "certificate", "name of its Service"),
	ROW(certificate_of_metrics, judge_certificates, OK, "certificate", "gpu.example.org"),
	ROW(certificate_keyless, judge_certificates, PROBLEM, "certificate",
	    "private key does not exist"),
	ROW(certificate_gone, judge_certificates, PROBLEM, "certificate",
	    "does not exist: that server does not start"),

	ROW(nothing, judge_clock, OK, "", ""),
	ROW(clock_well, judge_clock, OK, "clock", "is synchronized"),
	ROW(clock_alone, judge_clock, WARNING, "clock", "not synchronized"),
	ROW(clock_forward, judge_clock, WARNING, "clock", "forward by 3600 s"),
	ROW(clock_back, judge_clock, WARNING, "clock", "back by 61 s"),
	ROW(clock_slewed, judge_clock, OK, "", ""),
	ROW(clock_unset, judge_clock, PROBLEM, "clock", "shows 1970-01-01"),

	ROW(nothing, judge_versions, OK, "", ""),
	ROW(driver_same, judge_versions, OK, "versions", "580.1"),
	ROW(driver_new, judge_versions, PROBLEM, "versions",
	    "NVML of driver 580.1 but the kernel module is 580.2"),
	ROW(driver_simulated, judge_versions, OK, "", ""),

	ROW(nothing, judge_cluster, OK, "", ""),
	ROW(node_well, judge_cluster, OK, "node", "gpu-1 takes pods"),
	ROW(node_cordoned, judge_cluster, WARNING, "node", "is cordoned"),
	ROW(node_unknown, judge_cluster, WARNING, "node", "not found"),
	ROW(taint_of_gpus, judge_cluster, NOTE, "taint", "nvidia.com/gpu=present:NoSchedule"),
	ROW(taint_of_a_fault, judge_cluster, WARNING, "taint", "Kubernetes itself keeps pods away"),
	ROW(taint_mild, judge_cluster, NOTE, "taint", "spot:PreferNoSchedule"),

	ROW(nothing, judge_rivals, OK, "", ""),
	ROW(plugin_of_nvidia, judge_rivals, WARNING, "device-plugin", "(pid 4713)"),
	ROW(monitor_of_hami, judge_rivals, WARNING, "device-plugin", "HAMi's monitor"),
	ROW(gpu_manager, judge_rivals, WARNING, "device-plugin", "gpu-manager runs"),
	ROW(dcgm, judge_rivals, NOTE, "monitor", "DCGM_FI_PROF_"),
	ROW(hami_files, judge_rivals, NOTE, "hami-files", "/usr/local/vgpu"),
	ROW(mps_pipe, judge_rivals, NOTE, "mps-pipe", "/tmp/nvidia-mps/control"),

	ROW(nothing, judge_tenant, OK, "", ""),
	ROW(tenant, judge_tenant, OK, "tenant", "web; /run/allot/tenant/allot.sock answers"),
	ROW(tenant, judge_tenant, OK, "quota",
	    "100 of 4096 MiB used; 30 % of its time guaranteed, at most 60 %"),
	ROW(tenant, judge_tenant, OK, "preloaded", "/etc/ld.so.preload"),
	ROW(tenant_paused, judge_tenant, WARNING, "tenant", "is paused"),
	ROW(tenant_of_old_daemon, judge_tenant, OK, "tenant", "/run/allot/tenant/allot.sock answers"),
	ROW(tenant_alone, judge_tenant, PROBLEM, "tenant",
	    "Connection refused: CUDA programs here wait 30 s"),
	ROW(tenant_around, judge_tenant, PROBLEM, "preloaded", "bypass the quota"),
	ROW(tenant_by_mirror, judge_tenant, OK, "preloaded", "libcuda.so.1 here is of allot mirror"),
	ROW(tenant_uncontrolled, judge_tenant, PROBLEM, "preloaded", "is not in this process"),
};

static void test_rows(void **state)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		assert_row(&rows[i]);
}

/* The remedy names the setting that the certificate comes from. */
static void test_remedy_of_a_certificate(void **state)
{
	static const char *const settings[] = { "tls_certificate", "web_tls_certificate",
						"metrics_tls_certificate" };
	for (size_t i = 0; i < sizeof(settings) / sizeof(*settings); i++) {
		struct facts facts = { 0 };
		struct findings found = { 0 };
		char wanted[64];
		facts.clock.now_s = NOW;
		certificate_gone(&facts);
		facts.certificate[0].setting = settings[i];
		judge_certificates(&facts, &found);
		snprintf(wanted, sizeof(wanted), "or set %s = none", settings[i]);
		assert_int_equal(found.count, 1);
		assert_non_null(strstr(found.list[0].remedy, wanted));
		findings_free(&found);
	}
}

static void test_versions(void **state)
{
	static const struct {
		const char *text, *version, *word;
	} texts[] = {
		{ "containerd github.com/containerd/containerd v1.7.24 88bf19b", "1.7.24", "" },
		{ "Docker version 28.3.0, build 38b7060", "28.3.0", "" },
		{ "Kubernetes v1.34.1", "1.34.1", "" },
		{ "podman version 4.3.1\n", "4.3.1", "4.3.1" },
		{ "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release",
		  "580.65.06", "580.65.06" },
		{ "k9s has none 12 3.", "", "" },
		{ "", "", "" },
	};
	char found[VERSION_TEXT_MAX];

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		assert_int_equal(version_find(texts[i].text, found), texts[i].version[0] != '\0');
		assert_string_equal(found, texts[i].version);
		version_find_word(texts[i].text, found);
		assert_string_equal(found, texts[i].word);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_remedy_of_a_certificate),
		cmocka_unit_test(test_versions),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
