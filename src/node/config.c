#include "node/config.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "node/config_inside.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)
#define AT(field) offsetof(struct config, field)
#define US(n) ((n)*NSEC_PER_USEC)
#define MS(n) ((n)*NSEC_PER_MSEC)
#define S(n) ((n)*NSEC_PER_SEC)
#define PCT(n) SETTING_PCT(n)

static const struct setting settings[] = {
	{ "log_level", KIND_LEVEL, AT(log_level), "info", 0, 0, "error, warning, info or debug" },
	{ "nvml", KIND_TEXT, AT(nvml), "libnvidia-ml.so.1", 0, 0, "NVML's library, by name or path" },
	{ "linger", KIND_DURATION, AT(linger_ns), "1s", MS(1), S(86400),
	  "a private daemon without tenants exits after this long" },
	{ "census_interval", KIND_DURATION, AT(census_ns), "1s", MS(50), S(3600),
	  "how often each ledger is compared with what NVML says" },
	{ "adopt_wait", KIND_DURATION, AT(adopt_wait_ns), "1s", MS(1), S(60),
	  "after a restart, how long reservations wait for processes to move over" },
	{ "adopt_grace", KIND_DURATION, AT(adopt_grace_ns), "5s", MS(1),
	  S(3600), "after a restart, how long a held tenant waits for its command, where that may still live" },
	{ "context_bytes", KIND_SIZE, AT(context_bytes), "518MiB", 16 * MIB, 4 * GIB,
	  "memory charged for a CUDA context, until it has been measured" },
	{ "swap_arena", KIND_SIZE, AT(swap_arena_bytes), "auto", 2 * MIB, 1024 * GIB,
	  "host memory for what is taken off the cards; auto: half of the machine's" },
	{ "swap_arena_charge", KIND_CHARGE, AT(is_arena_tenants), "daemon", 0, 0,
	  "whose memory cgroup that counts in: daemon or tenant" },
	{ "overcommit_cores", KIND_OVERCOMMIT, AT(refuse_overcommit), "warn", 0, 0,
	  "guarantees over 100 % in sum: warn (and scale them), or refuse" },
	{ "checkpoint_timeout", KIND_DURATION, AT(checkpoint_timeout_ns), "30s", MS(100),
	  S(3600), "the driver may take so long to move a process off its GPU or back, and 1 s for each 256 MiB" },
	{ "use_half_life", KIND_DURATION, AT(use_half_life_ns), "10m", S(1), S(86400 * 365),
	  "GPU time used counts half after this long, where those that wait are ordered by it" },
	{ "wait_patience", KIND_DURATION, AT(wait_patience_ns), "10m", MS(1), S(86400 * 365),
	  "for who waits for memory this long, bytes are kept free, and it is passed no more" },
	{ "urgent_window", KIND_DURATION, AT(arbiter.urgent_window_ns), NULL, MS(1), S(60),
	  "over which a budget for priority may be saved up" },
	{ "urgent_slice", KIND_DURATION, AT(arbiter.urgent_slice_ns), NULL, US(100), S(1),
	  "what a budget for priority may be overdrawn by" },
	{ "depth", KIND_DURATION, AT(arbiter.depth_ns), NULL, US(10), S(1),
	  "work that a lease holder may have in flight" },
	{ "free_depth", KIND_DURATION, AT(free_depth_ns), "10ms", US(10), S(10),
	  "work that a tenant which runs alone may have in flight" },
	{ "free_depth_alone", KIND_DURATION, AT(free_depth_alone_ns), "100ms", US(10), S(10),
	  "the same while no other tenant has a process on the card" },
	{ "policy", KIND_POLICY, AT(arbiter.policy), "lease", 0, 0,
	  "how GPU time is handed out: lease, feedback or token" },
	{ "quantum", KIND_DURATION, AT(arbiter.quantum_ns), NULL, US(100), S(1),
	  "length of a lease while several tenants compute, at most" },
	{ "quantum_min", KIND_DURATION, AT(arbiter.quantum_min_ns), NULL, US(100), S(1),
	  "length of such a lease at least, where caps leave time for more hand-overs" },
	{ "gang_quantum", KIND_DURATION, AT(arbiter.gang_turn.quantum_ns), NULL, US(100), S(1),
	  "quantum while a tenant computes on this GPU and others at once, where that is more" },
	{ "gang_quantum_min", KIND_DURATION, AT(arbiter.gang_turn.quantum_min_ns), NULL, US(100),
	  S(1), "quantum_min while such a tenant computes, where that is more" },
	{ "gang_depth", KIND_DURATION, AT(arbiter.gang_turn.depth_ns), NULL, US(10), S(1),
	  "depth while such a tenant computes, where that is more" },
	{ "long_work", KIND_DURATION, AT(arbiter.long_work_ns), NULL, US(100), S(60),
	  "a lease holder begins nothing behind a piece of work that lasts this long" },
	{ "switch_cost", KIND_DURATION, AT(arbiter.switch_ns), NULL, 0, S(1),
	  "what the GPU needs to change tenants: charged to nobody" },
	{ "min_lease", KIND_DURATION, AT(arbiter.min_lease_ns), NULL, US(10), S(1),
	  "a lease is not cut short for a returning tenant before this" },
	{ "step_wait", KIND_DURATION, AT(arbiter.step_most_ns), NULL, 0,
	  S(1), "turns end where a program's step does, of steps up to so long; 0: when their time is over" },
	{ "cap_slice", KIND_DURATION, AT(arbiter.cap_slice_ns), NULL, US(10), S(1),
	  "GPU time that a capped tenant, alone, gathers before it runs again" },
	{ "cap_window", KIND_DURATION, AT(arbiter.window_ns), NULL, MS(1), S(60),
	  "over which a cap may be filled up" },
	{ "cap_idle_window", KIND_DURATION, AT(arbiter.idle_window_ns), NULL, 0, S(60),
	  "over which a cap may be filled up by a tenant that rests" },
	{ "idle", KIND_DURATION, AT(arbiter.idle_ns), NULL, US(10), S(1),
	  "a lease holder this long idle gives way at the latest, if it often comes back soon; one "
	  "on several GPUs at the earliest" },
	{ "idle_min", KIND_DURATION, AT(arbiter.idle_min_ns), NULL, US(10), S(1),
	  "a lease holder this long idle gives way at the earliest" },
	{ "free_after", KIND_DURATION, AT(arbiter.free_after_ns), NULL, MS(1), S(60),
	  "others this long idle before the one active tenant runs free" },
	{ "start_grace", KIND_DURATION, AT(arbiter.start_grace_ns), NULL, 0, S(1),
	  "from getting a lease to the first work: not charged, at most" },
	{ "drain_min", KIND_DURATION, AT(arbiter.drain_min_ns), NULL, US(100), S(10),
	  "a drain may take this long at least" },
	{ "drain_max", KIND_DURATION, AT(arbiter.drain_max_ns), NULL, US(100), S(60),
	  "a drain may take this long at most" },
	{ "poll_drain", KIND_DURATION, AT(arbiter.poll_drain_ns), NULL, US(10), S(1),
	  "how often the arbiter looks while a lease is being drained" },
	{ "poll_lease", KIND_DURATION, AT(arbiter.poll_lease_ns), NULL, US(10), S(1),
	  "how often the arbiter looks under leases" },
	{ "poll_free", KIND_DURATION, AT(arbiter.poll_free_ns), NULL, US(10), S(1),
	  "how often the arbiter looks while one tenant runs free" },
	{ "poll_idle", KIND_DURATION, AT(arbiter.poll_idle_ns), NULL, US(10), S(1),
	  "how often the arbiter looks while no tenant computes" },
	{ "poll_rung", KIND_DURATION, AT(arbiter.poll_rung_ns), NULL, US(10), S(1),
	  "how often the arbiter looks at tenants that tell it when there is something to see" },
	{ "elastic", KIND_SWITCH, AT(is_elastic), "off", 0, 0,
	  "on or off: a tenant held at --cores may use what others leave unused" },
	{ "elastic_limit", KIND_PERCENT, AT(elastic.most_pct), NULL, PCT(1), PCT(100),
	  "the most that such a tenant may reach" },
	{ "elastic_period", KIND_DURATION, AT(elastic.period_ns), NULL, MS(100), S(1),
	  "how often it is decided what is lent" },
	{ "elastic_fade", KIND_DURATION, AT(elastic.fade_ns), NULL, MS(100), S(60),
	  "how fast it is forgotten what an owner has used" },
	{ "elastic_step", KIND_PERCENT, AT(elastic.step_pct), NULL, PCT(1), PCT(100),
	  "points by which a limit moves at most in a period" },
	{ "elastic_reserve", KIND_PERCENT, AT(elastic.reserve_pct), NULL, 0, PCT(100),
	  "part of what an owner leaves unused that is not lent" },
	{ "gang", KIND_SWITCH, AT(is_gang), "on", 0, 0,
	  "on or off: who works on several GPUs has its turns on them at the same time" },
	{ "turns", KIND_SWITCH, AT(has_turns), "on", 0, 0,
	  "on or off: within a tenant's lease one of its processes runs at a time" },
	{ "watch_tasks", KIND_SWITCH, AT(watch_tasks), "on", 0, 0,
	  "on or off: a system daemon records all GPU work, also without the library" },
	{ "task_nodes", KIND_TEXT, AT(task_nodes), "auto", 0, 0,
	  "device nodes whose opening begins GPU work; auto: /dev/nvidia-uvm" },
	{ "sharing", KIND_SHARING, AT(sharing), "time", 0, 0,
	  "how tenants that do not say share a GPU: time, space (MPS) or auto" },
	{ "space_caps", KIND_SPACE_CAPS, AT(space_caps), "gate", 0,
	  0, "what holds a limit in space: gate, its work on any SM, or threads, a part of the SMs by MPS" },
	{ "mps_clients", KIND_COUNT, AT(mps_clients), "60", 1, 1000,
	  "processes that one MPS server takes; the driver has a limit of its own" },
	{ "space_gain_min", KIND_PERCENT, AT(space_gain_min_pct), "10", 0, PCT(1000),
	  "with sharing auto: work more than in turns, percent, for which tenants share by space" },
	{ "on_violation", KIND_ON_VIOLATION, AT(on_violation), "report", 0, 0,
	  "who gets round the library is: report, freeze or end; tenants may be stricter" },
	{ "health", KIND_SWITCH, AT(watches_health), "on", 0, 0,
	  "on or off: GPUs that report faults or do not answer take no new tenants" },
	{ "health_ignore_xids", KIND_XIDS, AT(health_ignore_xids), "none", 0, 0,
	  "none, or numbers of Xids, by commas, that say nothing of a GPU's health" },
	{ "health_recover", KIND_DURATION, AT(health_recover_ns), "0s", 0, S(86400 * 365),
	  "a fault that was reported is over after this long without another; 0: by allot uncordon "
	  "alone" },
	{ "cordon", KIND_TEXT, AT(cordon), "none", 0, 0,
	  "none, or UUIDs of GPUs, by commas, that take no new tenants" },
	{ "freezer", KIND_SWITCH, AT(is_freezing), "off", 0, 0,
	  "on or off: containers without the library wait, frozen, while memory is short" },
	{ "freeze_threshold", KIND_SIZE, AT(freeze_threshold_bytes), "2GiB", MIB, 1048576 * GIB,
	  "free memory of a card below which a container that starts is frozen" },
	{ "thaw_settle", KIND_DURATION, AT(thaw_settle_ns), "2s", MS(1), S(3600),
	  "the next container is thawed when the last one's memory stood still for this long" },
	{ "freeze_only", KIND_TEXT, AT(freeze_only), "*", 0, 0,
	  "patterns of cgroups, by commas: of these containers only" },
	{ "freeze_never", KIND_TEXT, AT(freeze_never), "none", 0, 0,
	  "patterns of cgroups, by commas: none of these containers" },
	{ "metrics_listen", KIND_ADDRESS, AT(metrics_listen), "off", 0, 0,
	  "where metrics are served by HTTP: off, 127.0.0.1:9400, [::1]:9400, unix:/path" },
	{ "metrics_token_file", KIND_TEXT, AT(metrics_token_file), "none", 0, 0,
	  "file with the bearer token that a reader of metrics must name; none: nobody need" },
	{ "metrics_tls_certificate", KIND_PLACE, AT(metrics_tls_certificate), "none", 0,
	  0, "PEM file of the certificate by which metrics are served, by TLS alone; none: without TLS" },
	{ "metrics_tls_key", KIND_PLACE, AT(metrics_tls_key), "none", 0, 0,
	  "PEM file of the certificate's key" },
	{ "metrics_open", KIND_SWITCH, AT(metrics_open), "off", 0, 0,
	  "on or off: metrics may be read from other machines without a token" },
	{ "metrics_names", KIND_NAMES, AT(metrics_names), "hami", 0, 0,
	  "none, hami, gpu-manager or both: whose names metrics have beside allot's own" },
	{ "web_listen", KIND_ADDRESS, AT(web_listen), "off", 0,
	  0, "where a page of cards and tenants is served by HTTP: off, 127.0.0.1:9401, [::1]:9401, unix:/path" },
	{ "web_token_file", KIND_TEXT, AT(web_token_file), "none", 0,
	  0, "file with the bearer token that a reader of the page must name; none: nobody on this machine need" },
	{ "web_change_token_file", KIND_TEXT, AT(web_change_token_file), "none", 0, 0,
	  "file with the bearer token by which the page may change tenants; none: it may not" },
	{ "web_tls_certificate", KIND_PLACE, AT(web_tls_certificate), "none", 0,
	  0, "PEM file of the certificate by which the page is served, by TLS alone; none: without TLS" },
	{ "web_tls_key", KIND_PLACE, AT(web_tls_key), "none", 0, 0,
	  "PEM file of the certificate's key" },
	{ "container_engines", KIND_ENGINES, AT(container_engines), "auto", 0,
	  0, "auto, none, or sockets by commas, as docker:/run/docker.sock: asked for containers' names" },
	{ "kube_plugin", KIND_SWITCH, AT(is_kube_plugin), "off", 0, 0,
	  "on or off: a system daemon is the kubelet's device plugin" },
	{ "kube_plugin_dir", KIND_TEXT, AT(kube_plugin_dir), "/var/lib/kubelet/device-plugins", 0,
	  0, "where kubelet and plugins have their sockets" },
	{ "kube_pod_resources", KIND_TEXT, AT(kube_pod_resources),
	  "/var/lib/kubelet/pod-resources/kubelet.sock", 0, 0,
	  "where the kubelet tells what pods hold, or none" },
	{ "kube_resource", KIND_TEXT, AT(kube_resource), "nvidia.com/gpu", 0, 0,
	  "what pods ask for in their limits" },
	{ "kube_priority_resource", KIND_TEXT, AT(kube_priority_resource), "nvidia.com/priority", 0,
	  0, "what pods say a container's priority by in their limits: 0 is high, 1 low" },
	{ "kube_vocabulary", KIND_VOCABULARY, AT(kube_vocabulary), "slices", 0, 0,
	  "slices: GPUs in equal parts; hami: as the scheduler has written to the pod; "
	  "gpu-manager: vcuda-core and vcuda-memory (both need kube_api)" },
	{ "kube_core_resource", KIND_TEXT, AT(kube_core_resource), "tencent.com/vcuda-core", 0, 0,
	  "of gpu-manager's vocabulary: hundredths of a GPU's time" },
	{ "kube_memory_resource", KIND_TEXT, AT(kube_memory_resource), "tencent.com/vcuda-memory",
	  0, 0, "of gpu-manager's vocabulary: memory, in units of 256 MiB" },
	{ "kube_share", KIND_SWITCH, AT(is_kube_share), "on", 0, 0,
	  "on or off: parts of GPUs are given to containers; off: whole ones alone" },
	{ "kube_slices", KIND_COUNT, AT(kube_slices), "10", 1, 100,
	  "each GPU is shown as so many of it, which share memory and time equally" },
	{ "kube_slice_limit", KIND_LIMIT, AT(is_kube_slice_hard), "soft", 0, 0,
	  "soft: a slice may use time that others leave; hard: never more than its own" },
	{ "state_dir", KIND_PLACE, AT(state_dir), "auto", 0,
	  0, "directory of what outlives a reboot; auto: /var/lib/allot/..., of a private daemon its run directory" },
	{ "claim_grace", KIND_DURATION, AT(claim_grace_ns), "5m", S(1),
	  S(86400 * 30), "a scheduler's claim in which nothing runs, and that nobody wants, ends after this long" },
	{ "container_driver", KIND_PLACE, AT(container_driver), "toolkit", 0,
	  0, "who brings the driver into containers: toolkit (NVIDIA's), or a directory that allot mirror made" },
	{ "container_library", KIND_PLACE, AT(container_library), "auto", 0, 0,
	  "liballot.so for containers; auto: the one beside this program" },
	{ "library_manifest", KIND_PLACE, AT(library_manifest), "none", 0,
	  0, "none, or a file of the SHA-256 that liballot.so for containers may have, signed: FILE.sig" },
	{ "library_keys", KIND_PLACE, AT(library_keys), "none", 0, 0,
	  "PEM file of the Ed25519 keys of which one must have signed library_manifest" },
	{ "allow_disable_control", KIND_SWITCH, AT(allow_disable_control), "off", 0, 0,
	  "on or off: a container that sets CUDA_DISABLE_CONTROL gets no library" },
	{ "audit_log", KIND_PLACE, AT(audit_log), "off", 0, 0,
	  "off, or a file: who changed what of whose terms, a JSON line each; reopened on SIGHUP" },
	{ "kube_api", KIND_TEXT, AT(kube_api), "off", 0,
	  0, "off, in-cluster or a kubeconfig's path: what this node has is told to HAMi's or allot's scheduler" },
	{ "kube_node_name", KIND_TEXT, AT(kube_node_name), "auto", 0, 0,
	  "this node's name in Kubernetes; auto: $NODE_NAME, or this machine's name" },
	{ "kube_labels", KIND_TEXT, AT(kube_labels), "gpu=on", 0, 0,
	  "labels of this node, by commas, as gpu=on,rack=a3; or none" },
	{ "kube_live_terms", KIND_SWITCH, AT(is_kube_live_terms), "on", 0,
	  0, "on or off: pods' annotations, as allot.dev/memory, change the terms of containers that run" },
	{ "kube_use_window", KIND_DURATION, AT(kube_use_window_ns), "0s", 0, S(600),
	  "over what time the use of cards is measured and published, as 5m, for a scheduler "
	  "that places by use; 0s: not at all" },
	{ "kube_split_count", KIND_COUNT, AT(kube_split_count), "10", 1, 1000,
	  "containers that may share a card, as schedulers are told" },
	{ "kube_memory_scaling", KIND_FACTOR, AT(kube_memory_scaling), "1", 0, 100,
	  "schedulers are told of this many times the memory that a card has" },
	{ "kube_core_scaling", KIND_FACTOR, AT(kube_core_scaling), "1", 0, 100,
	  "schedulers are told of this many times a card's time" },
	{ "token_quota", KIND_DURATION, AT(arbiter.token_quota_ns), NULL, MS(1), S(10),
	  "policy token: how long one tenant has the token" },
	{ "token_window", KIND_DURATION, AT(arbiter.token_window_ns), NULL, MS(10), S(3600),
	  "policy token: over which use is counted" },
	{ "feedback_control", KIND_CONTROL, AT(arbiter.feedback.control), "pi", 0, 0,
	  "policy feedback: the control law, p, pi or pid" },
	{ "feedback_sensor", KIND_SENSOR, AT(arbiter.feedback_sensor), "busy", 0, 0,
	  "policy feedback: what it measures, busy (time) or nvml" },
	{ "feedback_p", KIND_GAIN, AT(arbiter.feedback.gains.p), "auto", 0, 100,
	  "policy feedback: gain of the error; auto: by feedback_control" },
	{ "feedback_i", KIND_GAIN, AT(arbiter.feedback.gains.i_per_s), "auto", 0, 1000,
	  "policy feedback: gain of its sum over time, a second; or auto" },
	{ "feedback_d", KIND_GAIN, AT(arbiter.feedback.gains.d_s), "auto", 0, 10,
	  "policy feedback: gain of the share's slope, in seconds; or auto" },
	{ "feedback_smooth", KIND_DURATION, AT(arbiter.feedback.smooth_ns), NULL, MS(1), S(10),
	  "policy feedback: time constant of the measured share" },
	{ "feedback_period_min", KIND_DURATION, AT(arbiter.feedback.period_min_ns), NULL, MS(1),
	  S(10), "policy feedback: shortest time between two measurements" },
	{ "feedback_period_max", KIND_DURATION, AT(arbiter.feedback.period_max_ns), NULL, MS(1),
	  S(10), "policy feedback: longest time between two measurements" },
};
#define SETTING_COUNT (sizeof(settings) / sizeof(settings[0]))

const struct setting *setting_find(const char *name)
{
	for (size_t i = 0; i < SETTING_COUNT; i++)
		if (!strcmp(settings[i].name, name))
			return &settings[i];
	return NULL;
}

const char *config_name(unsigned index)
{
	return index < SETTING_COUNT ? settings[index].name : NULL;
}

void config_default(struct config *config)
{
	*config = (struct config){ .arbiter = arbiter_default_config(),
				   .elastic = elastic_default_config() };
	for (size_t i = 0; i < SETTING_COUNT; i++)
		if (settings[i].default_text)
			setting_set(&settings[i], config, settings[i].default_text, NULL);
}

unsigned config_split_count(const struct config *config)
{
	return config->is_kube_share ? config->kube_split_count : 1;
}

static void format_default(const struct setting *s, char *text, size_t size)
{
	struct config config;
	if (s->default_text) {
		snprintf(text, size, "%s", s->default_text);
		return;
	}
	config_default(&config);
	const void *field = (char *)&config + s->offset;
	uint64_t number = s->kind == KIND_PERCENT
				  ? (uint64_t)(*(const double *)field * SETTING_PCT(1) + 0.5)
				  : *(const uint64_t *)field;
	setting_format(s, number, text, size);
}

void config_print_help(FILE *out)
{
	for (size_t i = 0; i < SETTING_COUNT; i++) {
		char value[CONFIG_PATH_MAX];
		format_default(&settings[i], value, sizeof(value));
		fprintf(out, "  %-19s %-18s %s\n", settings[i].name, value, settings[i].help);
	}
}
