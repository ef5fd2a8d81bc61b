#include "daemon/config/config.h"

#include <string.h>

#include "daemon/config/config_inside.h"

static const struct setting rows[] = {
	{ "log_level", KIND_LEVEL, AT(log_level), "info", 0, 0, "error, warning, info or debug" },
	{ "nvml", KIND_TEXT, AT(nvml), "libnvidia-ml.so.1", 0, 0, "NVML's library, by name or path" },
	{ "linger", KIND_DURATION, AT(linger_ns), "1s", MS(1), S(86400),
	  "a private daemon without tenants exits after this long" },
	{ "census_interval", KIND_DURATION, AT(census_ns), "1s", MS(50), S(3600),
	  "how often each ledger is compared with what NVML says" },
	{ "swap_arena", KIND_SIZE, AT(swap_arena_bytes), "auto", 2 * MIB, 1024 * GIB,
	  "host memory for what is taken off the cards; auto: half of the machine's" },
	{ "swap_arena_charge", KIND_CHARGE, AT(is_arena_tenants), "daemon", 0, 0,
	  "whose memory cgroup that counts in: daemon or tenant" },
	{ "overcommit_cores", KIND_OVERCOMMIT, AT(refuse_overcommit), "warn", 0, 0,
	  "guarantees over 100 % in sum: warn (and scale them), or refuse" },
	{ "checkpoint_timeout", KIND_DURATION, AT(checkpoint_timeout_ns), "30s", MS(100), S(3600),
	  "the driver may take so long to move a process off its GPU or back, and 1 s for each 256 MiB" },
	{ "use_half_life", KIND_DURATION, AT(use_half_life_ns), "10m", S(1), S(86400 * 365),
	  "GPU time used counts half after this long, where those that wait are ordered by it" },
	{ "wait_patience", KIND_DURATION, AT(wait_patience_ns), "10m", MS(1), S(86400 * 365),
	  "for who waits for memory this long, bytes are kept free, and it is passed no more" },
	{ "policy", KIND_POLICY, AT(arbiter.policy), "lease", 0, 0,
	  "how GPU time is handed out: lease, feedback or token" },
	{ "quantum", KIND_DURATION, AT(arbiter.quantum_ns), NULL, US(100), S(1),
	  "length of a lease while several tenants compute, at most" },
	{ "elastic", KIND_SWITCH, AT(is_elastic), "off", 0, 0,
	  "on or off: a tenant held at --cores may use what others leave unused" },
	{ "elastic_limit", KIND_PERCENT, AT(elastic.most_pct), NULL, PCT(1), PCT(100),
	  "the most that such a tenant may reach" },
	{ "gang", KIND_SWITCH, AT(is_gang), "on", 0, 0,
	  "on or off: who works on several GPUs has its turns on them at the same time" },
	{ "turns", KIND_SWITCH, AT(has_turns), "on", 0, 0,
	  "on or off: within a tenant's lease one of its processes runs at a time" },
	{ "watch_tasks", KIND_SWITCH, AT(watch_tasks), "on", 0, 0,
	  "on or off: a system daemon records all GPU work, also without the library" },
	{ "sharing", KIND_SHARING, AT(sharing), "time", 0, 0,
	  "how tenants that do not say share a GPU: time, space (MPS) or auto" },
	{ "space_caps", KIND_SPACE_CAPS, AT(space_caps), "gate", 0, 0,
	  "what holds a limit in space: gate, its work on any SM, or threads, a part of the SMs by MPS" },
	{ "mps_clients", KIND_COUNT, AT(mps_clients), "60", 1, 1000,
	  "processes that one MPS server takes; the driver has a limit of its own" },
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
	{ "freeze_only", KIND_TEXT, AT(freeze_only), "*", 0, 0,
	  "patterns of cgroups, by commas: of these containers only" },
	{ "freeze_never", KIND_TEXT, AT(freeze_never), "none", 0, 0,
	  "patterns of cgroups, by commas: none of these containers" },
	{ "metrics_listen", KIND_ADDRESS, AT(metrics_listen), "off", 0, 0,
	  "where metrics are served by HTTP: off, 127.0.0.1:9400, [::1]:9400, unix:/path" },
	{ "metrics_token_file", KIND_TEXT, AT(metrics_token_file), "none", 0, 0,
	  "file with the bearer token that a reader of metrics must name; none: nobody need" },
	{ "metrics_tls_certificate", KIND_PLACE, AT(metrics_tls_certificate), "none", 0, 0,
	  "PEM file of the certificate by which metrics are served, by TLS alone; none: without TLS" },
	{ "metrics_tls_key", KIND_PLACE, AT(metrics_tls_key), "none", 0, 0,
	  "PEM file of the certificate's key" },
	{ "metrics_open", KIND_SWITCH, AT(metrics_open), "off", 0, 0,
	  "on or off: metrics may be read from other machines without a token" },
	{ "metrics_names", KIND_NAMES, AT(metrics_names), "hami", 0, 0,
	  "none, hami, gpu-manager or both: whose names metrics have beside allot's own" },
	{ "web_listen", KIND_ADDRESS, AT(web_listen), "off", 0, 0,
	  "where a page of cards and tenants is served by HTTP: off, 127.0.0.1:9401, [::1]:9401, unix:/path" },
	{ "web_token_file", KIND_TEXT, AT(web_token_file), "none", 0, 0,
	  "file with the bearer token that a reader of the page must name; none: nobody on this machine need" },
	{ "web_change_token_file", KIND_TEXT, AT(web_change_token_file), "none", 0, 0,
	  "file with the bearer token by which the page may change tenants; none: it may not" },
	{ "web_tls_certificate", KIND_PLACE, AT(web_tls_certificate), "none", 0, 0,
	  "PEM file of the certificate by which the page is served, by TLS alone; none: without TLS" },
	{ "web_tls_key", KIND_PLACE, AT(web_tls_key), "none", 0, 0,
	  "PEM file of the certificate's key" },
	{ "container_engines", KIND_ENGINES, AT(container_engines), "auto", 0, 0,
	  "auto, none, or sockets by commas, as docker:/run/docker.sock: asked for containers' names" },
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
	{ "state_dir", KIND_PLACE, AT(state_dir), "auto", 0, 0,
	  "directory of what outlives a reboot; auto: /var/lib/allot/..., of a private daemon its run directory" },
	{ "claim_grace", KIND_DURATION, AT(claim_grace_ns), "5m", S(1), S(86400 * 30),
	  "a scheduler's claim in which nothing runs, and that nobody wants, ends after this long" },
	{ "container_driver", KIND_PLACE, AT(container_driver), "toolkit", 0, 0,
	  "who brings the driver into containers: toolkit (NVIDIA's), or a directory that allot mirror made" },
	{ "container_library", KIND_PLACE, AT(container_library), "auto", 0, 0,
	  "liballot.so for containers; auto: the one beside this program" },
	{ "library_manifest", KIND_PLACE, AT(library_manifest), "none", 0, 0,
	  "none, or a file of the SHA-256 that liballot.so for containers may have, signed: FILE.sig" },
	{ "library_keys", KIND_PLACE, AT(library_keys), "none", 0, 0,
	  "PEM file of the Ed25519 keys of which one must have signed library_manifest" },
	{ "allow_disable_control", KIND_SWITCH, AT(allow_disable_control), "off", 0, 0,
	  "on or off: a container that sets CUDA_DISABLE_CONTROL gets no library" },
	{ "audit_log", KIND_PLACE, AT(audit_log), "off", 0, 0,
	  "off, or a file: who changed what of whose terms, a JSON line each; reopened on SIGHUP" },
	{ "kube_api", KIND_TEXT, AT(kube_api), "off", 0, 0,
	  "off, in-cluster or a kubeconfig's path: what this node has is told to HAMi's or allot's scheduler" },
	{ "kube_node_name", KIND_TEXT, AT(kube_node_name), "auto", 0, 0,
	  "this node's name in Kubernetes; auto: $NODE_NAME, or this machine's name" },
	{ "kube_labels", KIND_TEXT, AT(kube_labels), "gpu=on", 0, 0,
	  "labels of this node, by commas, as gpu=on,rack=a3; or none" },
	{ "kube_live_terms", KIND_SWITCH, AT(is_kube_live_terms), "on", 0, 0,
	  "on or off: pods' annotations, as allot.dev/memory, change the terms of containers that run" },
	{ "kube_use_window", KIND_DURATION, AT(kube_use_window_ns), "0s", 0, S(600),
	  "over what time the use of cards is measured and published, as 5m, for a scheduler "
	  "that places by use; 0s: not at all" },
	{ "kube_split_count", KIND_COUNT, AT(kube_split_count), "10", 1, 1000,
	  "containers that may share a card, as schedulers are told" },
	{ "kube_memory_scaling", KIND_FACTOR, AT(kube_memory_scaling), "1", 0, 100,
	  "schedulers are told of this many times the memory that a card has" },
	{ "kube_core_scaling", KIND_FACTOR, AT(kube_core_scaling), "1", 0, 100,
	  "schedulers are told of this many times a card's time" },
};

static const struct setting_table settings = { rows, sizeof(rows) / sizeof(rows[0]) };

/* ---- both tables ---- */

const struct setting_table *const setting_tables[CONFIG_TABLES] = {
	[CONFIG_SETTINGS] = &settings,
	[CONFIG_TUNING] = &config_tuning,
};

const struct setting *setting_find(const struct setting_table *table, const char *name)
{
	for (size_t i = 0; i < table->count; i++)
		if (!strcmp(table->row[i].name, name))
			return &table->row[i];
	return NULL;
}

const char *config_name(enum config_table table, unsigned index)
{
	const struct setting_table *t = setting_tables[table];
	return index < t->count ? t->row[index].name : NULL;
}

void config_default(struct config *config)
{
	*config = (struct config){ .arbiter = arbiter_default_config(),
				   .elastic = elastic_default_config() };
	for (size_t t = 0; t < CONFIG_TABLES; t++)
		for (size_t i = 0; i < setting_tables[t]->count; i++) {
			const struct setting *s = &setting_tables[t]->row[i];
			if (s->default_text)
				setting_set(s, config, s->default_text, NULL);
		}
}

unsigned config_split_count(const struct config *config)
{
	return config->is_kube_share ? config->kube_split_count : 1;
}

void setting_format_default(const struct setting *s, char *text, size_t size)
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

void config_print_help(enum config_table table, FILE *out)
{
	for (size_t i = 0; i < setting_tables[table]->count; i++) {
		const struct setting *s = &setting_tables[table]->row[i];
		char value[CONFIG_PATH_MAX];
		setting_format_default(s, value, sizeof(value));
		fprintf(out, "  %-19s %-18s %s\n", s->name, value, s->help);
	}
}
