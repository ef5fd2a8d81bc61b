/* The table of allotd's settings, the words and checks of its rows, and what concerns several of them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/parse.h"
#include "daemon/config/config.h"
#include "daemon/config/config_foreign.h"
#include "daemon/config/config_rows.h"
#include "daemon/containers/engine/engine.h"
#include "daemon/containers/trust/trust.h"
#include "daemon/export/metrics/metrics.h"
#include "daemon/export/metrics/names.h"
#include "daemon/export/page/page.h"
#include "daemon/kubelet/dra/dra.h"
#include "daemon/kubelet/kube/kube.h"
#include "daemon/kubelet/plugin/plugin.h"
#include "http/address.h"
#include "policy/safety/health_policy.h"

_Static_assert(sizeof(enum arbiter_policy) == sizeof(unsigned) &&
		       sizeof(enum feedback_control) == sizeof(unsigned) &&
		       sizeof(enum arbiter_sensor) == sizeof(unsigned) &&
		       sizeof(enum on_violation) == sizeof(unsigned) &&
		       sizeof(enum sharing_way) == sizeof(unsigned),
	       "a choice is written as an unsigned");

/* ---- words ---- */

static const char *const policy_words[] = { [ARBITER_POLICY_LEASE] = "lease",
					    [ARBITER_POLICY_FEEDBACK] = "feedback",
					    [ARBITER_POLICY_TOKEN] = "token",
					    NULL };
static const char *const on_violation_words[] = {
	[ON_VIOLATION_REPORT] = "report", [ON_VIOLATION_FREEZE] = "freeze", [ON_VIOLATION_END] = "end", NULL
};
static const char *const sharing_words[] = {
	[SHARING_TIME] = "time", [SHARING_SPACE] = "space", NULL
};
static const char *const vocabulary_words[] = { [KUBE_VOCABULARY_SLICES] = "slices",
						[KUBE_VOCABULARY_HAMI] = "hami",
						[KUBE_VOCABULARY_GPU_MANAGER] = "gpu-manager",
						NULL };
static const char *const overcommit_words[] = { "warn", "refuse", NULL };
static const char *const charge_words[] = { "daemon", "tenant", NULL };
static const char *const limit_words[] = { "soft", "hard", NULL };

const char *config_policy_name(enum arbiter_policy policy)
{
	return policy_words[policy];
}

/* ---- what a value has to be ---- */

static int check_address(const char *value, struct error *err)
{
	struct address address;
	return address_parse(value, &address, err);
}

static int check_sharing(const char *value, struct error *err)
{
	bool is_space;
	return parse_sharing(value, &is_space, err);
}

static int check_engines(const char *value, struct error *err)
{
	struct engines engines;
	return engines_parse(value, &engines, err);
}

static int check_metrics_names(const char *value, struct error *err)
{
	unsigned names;
	return metrics_names_parse(value, &names, err);
}

static int check_xids(const char *value, struct error *err)
{
	struct health_ignored ignored;
	return health_parse_ignored(value, &ignored, err);
}

static int check_above_zero(const char *value, struct error *err)
{
	return strtod(value, NULL) > 0 ? 0
				       : error_set(err, ERANGE, "'%.40s': must be above 0", value);
}

/* ---- the table ---- */

static const struct settings_row rows[] = {
	{ "log_level", SETTINGS_CHOICE, AT(log_level), "info", 0, 0,
	  "error, warning, info or debug", .words = log_level_words },
	{ "nvml", SETTINGS_TEXT, AT(nvml), "libnvidia-ml.so.1", 0, 0,
	  "NVML's library, by name or path" },
	{ "linger", SETTINGS_DURATION, AT(linger_ns), "1s", MS(1), S(86400),
	  "a private daemon without tenants exits after this long" },
	{ "census_interval", SETTINGS_DURATION, AT(census_ns), "1s", MS(50), S(3600),
	  "how often each ledger is compared with what NVML says" },
	{ "swap_arena", SETTINGS_SIZE, AT(swap_arena_bytes), "auto", 2 * MIB, 1024 * GIB,
	  "host memory for what is taken off the cards; auto: half of the machine's" },
	{ "swap_arena_charge", SETTINGS_EITHER, AT(is_arena_tenants), "daemon", 0, 0,
	  "whose memory cgroup that counts in: daemon or tenant", .words = charge_words },
	{ "overcommit_cores", SETTINGS_EITHER, AT(refuse_overcommit), "warn", 0, 0,
	  "guarantees over 100 % in sum: warn (and scale them), or refuse",
	  .words = overcommit_words },
	{ "checkpoint_timeout", SETTINGS_DURATION, AT(checkpoint_timeout_ns), "30s", MS(100), S(3600),
	  "the driver may take so long to move a process off its GPU or back, and 1 s for each 256 MiB" },
	{ "use_half_life", SETTINGS_DURATION, AT(use_half_life_ns), "10m", S(1), S(86400 * 365),
	  "GPU time used counts half after this long, where those that wait are ordered by it" },
	{ "wait_patience", SETTINGS_DURATION, AT(wait_patience_ns), "10m", MS(1), S(86400 * 365),
	  "for who waits for memory this long, bytes are kept free, and it is passed no more" },
	{ "policy", SETTINGS_CHOICE, AT(arbiter.policy), "lease", 0, 0,
	  "how GPU time is handed out: lease, feedback or token", .words = policy_words },
	{ "quantum", SETTINGS_DURATION, AT(arbiter.quantum_ns), NULL, US(100), S(1),
	  "length of a lease while several tenants compute, at most" },
	{ "elastic", SETTINGS_SWITCH, AT(is_elastic), "off", 0, 0,
	  "on or off: a tenant held at --cores may use what others leave unused" },
	{ "elastic_limit", SETTINGS_PERCENT, AT(elastic.most_pct), NULL, PCT(1), PCT(100),
	  "the most that such a tenant may reach" },
	{ "gang", SETTINGS_SWITCH, AT(is_gang), "on", 0, 0,
	  "on or off: who works on several GPUs has its turns on them at the same time" },
	{ "turns", SETTINGS_SWITCH, AT(has_turns), "on", 0, 0,
	  "on or off: within a tenant's lease one of its processes runs at a time" },
	{ "watch_tasks", SETTINGS_SWITCH, AT(watch_tasks), "on", 0, 0,
	  "on or off: a system daemon records all GPU work, also without the library" },
	{ "sharing", SETTINGS_CHOICE, AT(sharing), "time", 0, 0,
	  "how tenants that do not say share a GPU: time, or space (MPS)", .words = sharing_words,
	  .check = check_sharing },
	{ "mps_clients", SETTINGS_COUNT, AT(mps_clients), "60", 1, 1000,
	  "processes that one MPS server takes; the driver has a limit of its own" },
	{ "on_violation", SETTINGS_CHOICE, AT(on_violation), "report", 0, 0,
	  "who gets round the library is: report, freeze or end; tenants may be stricter",
	  .words = on_violation_words },
	{ "health", SETTINGS_SWITCH, AT(watches_health), "on", 0, 0,
	  "on or off: GPUs that report faults or do not answer take no new tenants" },
	{ "health_ignore_xids", SETTINGS_TEXT, AT(health_ignore_xids), "none", 0, 0,
	  "none, or numbers of Xids, by commas, that say nothing of a GPU's health",
	  .check = check_xids },
	{ "health_recover", SETTINGS_DURATION, AT(health_recover_ns), "0s", 0, S(86400 * 365),
	  "a fault that was reported is over after this long without another; 0: by allot uncordon "
	  "alone" },
	{ "cordon", SETTINGS_TEXT, AT(cordon), "none", 0, 0,
	  "none, or UUIDs of GPUs, by commas, that take no new tenants" },
	{ "freezer", SETTINGS_SWITCH, AT(is_freezing), "off", 0, 0,
	  "on or off: containers without the library wait, frozen, while memory is short" },
	{ "freeze_threshold", SETTINGS_SIZE, AT(freeze_threshold_bytes), "2GiB", MIB, 1048576 * GIB,
	  "free memory of a card below which a container that starts is frozen" },
	{ "freeze_only", SETTINGS_TEXT, AT(freeze_only), "*", 0, 0,
	  "patterns of cgroups, by commas: of these containers only" },
	{ "freeze_never", SETTINGS_TEXT, AT(freeze_never), "none", 0, 0,
	  "patterns of cgroups, by commas: none of these containers" },
	{ "metrics_listen", SETTINGS_TEXT, AT(metrics_listen), "off", 0, 0,
	  "where metrics are served by HTTP: off, 127.0.0.1:9400, [::1]:9400, unix:/path",
	  .check = check_address },
	{ "metrics_token_file", SETTINGS_TEXT, AT(metrics_token_file), "none", 0, 0,
	  "file with the bearer token that a reader of metrics must name; none: nobody need" },
	{ "metrics_tls_certificate", SETTINGS_PLACE, AT(metrics_tls_certificate), "none", 0, 0,
	  "PEM file of the certificate by which metrics are served, by TLS alone; none: without TLS" },
	{ "metrics_tls_key", SETTINGS_PLACE, AT(metrics_tls_key), "none", 0, 0,
	  "PEM file of the certificate's key" },
	{ "metrics_open", SETTINGS_SWITCH, AT(metrics_open), "off", 0, 0,
	  "on or off: metrics may be read from other machines without a token" },
	{ "metrics_names", SETTINGS_TEXT, AT(metrics_names), "hami", 0, 0,
	  "none, hami, gpu-manager or both: whose names metrics have beside allot's own",
	  .check = check_metrics_names },
	{ "web_listen", SETTINGS_TEXT, AT(web_listen), "off", 0, 0,
	  "where a page of cards and tenants is served by HTTP: off, 127.0.0.1:9401, [::1]:9401, unix:/path",
	  .check = check_address },
	{ "web_token_file", SETTINGS_TEXT, AT(web_token_file), "none", 0, 0,
	  "file with the bearer token that a reader of the page must name; none: nobody on this machine need" },
	{ "web_change_token_file", SETTINGS_TEXT, AT(web_change_token_file), "none", 0, 0,
	  "file with the bearer token by which the page may change tenants; none: it may not" },
	{ "web_tls_certificate", SETTINGS_PLACE, AT(web_tls_certificate), "none", 0, 0,
	  "PEM file of the certificate by which the page is served, by TLS alone; none: without TLS" },
	{ "web_tls_key", SETTINGS_PLACE, AT(web_tls_key), "none", 0, 0,
	  "PEM file of the certificate's key" },
	{ "container_engines", SETTINGS_TEXT, AT(container_engines), "auto", 0, 0,
	  "auto, none, or sockets by commas, as docker:/run/docker.sock: asked for containers' names",
	  .check = check_engines },
	{ "kube_plugin", SETTINGS_SWITCH, AT(is_kube_plugin), "off", 0, 0,
	  "on or off: a system daemon is the kubelet's device plugin" },
	{ "kube_plugin_dir", SETTINGS_TEXT, AT(kube_plugin_dir), "/var/lib/kubelet/device-plugins",
	  0, 0, "where kubelet and plugins have their sockets" },
	{ "kube_pod_resources", SETTINGS_TEXT, AT(kube_pod_resources),
	  "/var/lib/kubelet/pod-resources/kubelet.sock", 0, 0,
	  "where the kubelet tells what pods hold, or none" },
	{ "kube_resource", SETTINGS_TEXT, AT(kube_resource), "nvidia.com/gpu", 0, 0,
	  "what pods ask for in their limits" },
	{ "kube_priority_resource", SETTINGS_TEXT, AT(kube_priority_resource), "nvidia.com/priority",
	  0, 0, "what pods say a container's priority by in their limits: 0 is high, 1 low" },
	{ "kube_vocabulary", SETTINGS_CHOICE, AT(kube_vocabulary), "slices", 0, 0,
	  "slices: GPUs in equal parts; hami: as the scheduler has written to the pod; "
	  "gpu-manager: vcuda-core and vcuda-memory (both need kube_api)",
	  .words = vocabulary_words },
	{ "kube_core_resource", SETTINGS_TEXT, AT(kube_core_resource), "tencent.com/vcuda-core", 0,
	  0, "of gpu-manager's vocabulary: hundredths of a GPU's time" },
	{ "kube_memory_resource", SETTINGS_TEXT, AT(kube_memory_resource), "tencent.com/vcuda-memory",
	  0, 0, "of gpu-manager's vocabulary: memory, in units of 256 MiB" },
	{ "kube_share", SETTINGS_SWITCH, AT(is_kube_share), "on", 0, 0,
	  "on or off: parts of GPUs are given to containers; off: whole ones alone" },
	{ "kube_slices", SETTINGS_COUNT, AT(kube_slices), "10", 1, 100,
	  "each GPU is shown as so many of it, which share memory and time equally" },
	{ "kube_dra", SETTINGS_SWITCH, AT(is_kube_dra), "off", 0, 0,
	  "on or off: a system daemon is the DRA driver gpu.allot.dev (needs kube_api)" },
	{ "kube_dra_dir", SETTINGS_TEXT, AT(kube_dra_dir), "/var/lib/kubelet/plugins_registry", 0,
	  0, "where the kubelet looks for the sockets of DRA drivers" },
	{ "kube_cdi_dir", SETTINGS_TEXT, AT(kube_cdi_dir), "/var/run/cdi", 0, 0,
	  "where the container engine reads CDI specs: those of ResourceClaims are written there" },
	{ "kube_slice_limit", SETTINGS_EITHER, AT(is_kube_slice_hard), "soft", 0, 0,
	  "soft: a slice may use time that others leave; hard: never more than its own",
	  .words = limit_words },
	{ "state_dir", SETTINGS_PLACE, AT(state_dir), "auto", 0, 0,
	  "directory of what outlives a reboot; auto: /var/lib/allot/..., of a private daemon its run directory" },
	{ "claim_grace", SETTINGS_DURATION, AT(claim_grace_ns), "5m", S(1), S(86400 * 30),
	  "a scheduler's claim in which nothing runs, and that nobody wants, ends after this long" },
	{ "container_driver", SETTINGS_PLACE, AT(container_driver), "toolkit", 0, 0,
	  "who brings the driver into containers: toolkit (NVIDIA's), or a directory that allot mirror made" },
	{ "container_library", SETTINGS_PLACE, AT(container_library), "auto", 0, 0,
	  "liballot.so for containers; auto: the one beside this program" },
	{ "library_manifest", SETTINGS_PLACE, AT(library_manifest), "none", 0, 0,
	  "none, or a file of the SHA-256 that liballot.so for containers may have, signed: FILE.sig" },
	{ "library_keys", SETTINGS_PLACE, AT(library_keys), "none", 0, 0,
	  "PEM file of the Ed25519 keys of which one must have signed library_manifest" },
	{ "allow_disable_control", SETTINGS_SWITCH, AT(allow_disable_control), "off", 0, 0,
	  "on or off: a container that sets CUDA_DISABLE_CONTROL gets no library" },
	{ "audit_log", SETTINGS_PLACE, AT(audit_log), "off", 0, 0,
	  "off, or a file: who changed what of whose terms, a JSON line each; reopened on SIGHUP" },
	{ "kube_api", SETTINGS_TEXT, AT(kube_api), "off", 0, 0,
	  "off, in-cluster or a kubeconfig's path: what this node has is told to HAMi's or allot's scheduler" },
	{ "kube_node_name", SETTINGS_TEXT, AT(kube_node_name), "auto", 0, 0,
	  "this node's name in Kubernetes; auto: $NODE_NAME, or this machine's name" },
	{ "kube_labels", SETTINGS_TEXT, AT(kube_labels), "gpu=on", 0, 0,
	  "labels of this node, by commas, as gpu=on,rack=a3; or none" },
	{ "kube_live_terms", SETTINGS_SWITCH, AT(is_kube_live_terms), "on", 0, 0,
	  "on or off: pods' annotations, as allot.dev/memory, change the terms of containers that run" },
	{ "kube_use_window", SETTINGS_DURATION, AT(kube_use_window_ns), "0s", 0, S(600),
	  "over what time the use of cards is measured and published, as 5m, for a scheduler "
	  "that places by use; 0s: not at all" },
	{ "kube_split_count", SETTINGS_COUNT, AT(kube_split_count), "10", 1, 1000,
	  "containers that may share a card, as schedulers are told" },
	{ "kube_memory_scaling", SETTINGS_NUMBER, AT(kube_memory_scaling), "1", 0, 100,
	  "schedulers are told of this many times the memory that a card has",
	  .check = check_above_zero },
	{ "kube_core_scaling", SETTINGS_NUMBER, AT(kube_core_scaling), "1", 0, 100,
	  "schedulers are told of this many times a card's time", .check = check_above_zero },
};

/* The remedy depends on whether it is tuning. */
static int refuse_name(const char *key, struct error *err)
{
	const struct settings_row *tuning = settings_find(&config_tuning, key);
	struct config config;
	char value[CONFIG_PATH_MAX];
	if (!tuning)
		return error_set(err, ENOENT, "%.60s: no such setting (allotd --help lists them)",
				 key);
	config_default(&config);
	settings_format_default(tuning, &config, value, sizeof(value));
	return error_set(err, ENOENT,
			 "%s: is no setting any more: its value is %s; remove it (allotd --tuning, "
			 "for developers, can change it)",
			 key, value);
}

const struct settings_table config_settings = {
	.row = rows,
	.count = sizeof(rows) / sizeof(rows[0]),
	.check = (const settings_check[]){ metrics_check, page_check, plugin_check, node_kube_check,
					   dra_check, trust_check_settings, NULL },
	.alias = config_aliases,
	.unknown = refuse_name,
};

void config_default(struct config *config)
{
	*config = (struct config){ .arbiter = arbiter_default_config(),
				   .elastic = elastic_default_config() };
	settings_default(&config_settings, config);
	settings_default(&config_tuning, config);
}

unsigned config_split_count(const struct config *config)
{
	return config->is_kube_share ? config->kube_split_count : 1;
}
