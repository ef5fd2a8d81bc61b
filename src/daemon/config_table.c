/* The table of allotd's settings, and the checks of their values. */
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
#include "daemon/export/metrics/metrics_names.h"
#include "daemon/export/page/page.h"
#include "daemon/kubelet/dra/dra.h"
#include "daemon/kubelet/kube/kube.h"
#include "daemon/kubelet/plugin/plugin.h"
#include "daemon/tasks/commands/command_cgroups.h"
#include "http/address.h"
#include "policy/safety/health_policy.h"

_Static_assert(sizeof(enum arbiter_policy) == sizeof(unsigned) &&
		       sizeof(enum feedback_control) == sizeof(unsigned) &&
		       sizeof(enum arbiter_sensor) == sizeof(unsigned) &&
		       sizeof(enum on_violation) == sizeof(unsigned) &&
		       sizeof(enum sharing_way) == sizeof(unsigned),
	       "a choice is written as an unsigned");

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

static const struct settings_row rows[] = {
	{ "log_level", SETTINGS_CHOICE, AT(log_level), "info", 0, 0,
	  "minimum severity to log: error, warning, info or debug", .words = log_level_words },
	{ "nvml", SETTINGS_TEXT, AT(nvml), "libnvidia-ml.so.1", 0, 0,
	  "the NVML library, by name or path" },
	{ "linger", SETTINGS_DURATION, AT(linger_ns), "1s", MS(1), S(86400),
	  "a private daemon without tenants exits after this time" },
	{ "census_interval", SETTINGS_DURATION, AT(census_ns), "1s", MS(50), S(3600),
	  "how often each tenant's counted memory is compared with what NVML reports" },
	{ "swap_arena", SETTINGS_SIZE, AT(swap_arena_bytes), "auto", 2 * MIB, 1024 * GIB,
	  "host memory for swapped-out GPU memory; auto: half of the machine's memory" },
	{ "swap_arena_charge", SETTINGS_EITHER, AT(is_arena_tenants), "daemon", 0, 0,
	  "the memory cgroup that swapped-out memory is charged to: daemon or tenant",
	  .words = charge_words },
	{ "overcommit_cores", SETTINGS_EITHER, AT(refuse_overcommit), "warn", 0, 0,
	  "if the guarantees on a GPU add up to more than 100 %: warn and scale them down, or refuse the tenant",
	  .words = overcommit_words },
	{ "checkpoint_timeout", SETTINGS_DURATION, AT(checkpoint_timeout_ns), "30s", MS(100), S(3600),
	  "time the driver may take to move a process off its GPU or back, plus 1 s for each 256 MiB" },
	{ "wait_patience", SETTINGS_DURATION, AT(wait_patience_ns), "10m", MS(1), S(86400 * 365),
	  "a tenant that has waited for memory this long can no longer be overtaken: memory is kept free for it" },
	{ "policy", SETTINGS_CHOICE, AT(arbiter.policy), "lease", 0, 0,
	  "how GPU time is divided: lease, feedback or token", .words = policy_words },
	{ "quantum", SETTINGS_DURATION, AT(arbiter.quantum_ns), NULL, US(100), S(1),
	  "maximum length of a lease while several tenants compute" },
	{ "elastic", SETTINGS_SWITCH, AT(is_elastic), "off", 0, 0,
	  "on or off: a tenant with --cores and without --cores-limit may also use "
	  "the GPU time that others leave unused" },
	{ "elastic_limit", SETTINGS_PERCENT, AT(elastic.most_pct), NULL, PCT(1), PCT(100),
	  "maximum percent of a GPU that a tenant may reach by elastic = on" },
	{ "gang", SETTINGS_SWITCH, AT(is_gang), "on", 0, 0,
	  "on or off: a tenant on several GPUs gets its turns on all of them at the same time" },
	{ "turns", SETTINGS_SWITCH, AT(has_turns), "on", 0, 0,
	  "on or off: while a tenant holds a lease, only one of its processes runs at a time" },
	{ "watch_tasks", SETTINGS_SWITCH, AT(watch_tasks), "on", 0, 0,
	  "on or off: the system daemon records all processes that use a GPU, also those that are no tenant's" },
	{ "sharing", SETTINGS_CHOICE, AT(sharing), "time", 0, 0,
	  "how tenants share a GPU if they do not say: time (in turns), or space (at the same time, by NVIDIA MPS)",
	  .words = sharing_words, .check = check_sharing },
	{ "mps_clients", SETTINGS_COUNT, AT(mps_clients), "60", 1, 1000,
	  "maximum number of processes in one MPS server; the driver has its own limit" },
	{ "on_violation", SETTINGS_CHOICE, AT(on_violation), "report", 0, 0,
	  "what to do with a process that bypasses the allot library: report, freeze or end it; a tenant may ask for a stricter action",
	  .words = on_violation_words },
	{ "health", SETTINGS_SWITCH, AT(watches_health), "on", 0, 0,
	  "on or off: a GPU that reports a fault or does not answer takes no new tenants" },
	{ "health_ignore_xids", SETTINGS_TEXT, AT(health_ignore_xids), "none", 0, 0,
	  "none, or a comma-separated list of Xid numbers that do not make a GPU unhealthy",
	  .check = check_xids },
	{ "health_recover", SETTINGS_DURATION, AT(health_recover_ns), "0s", 0, S(86400 * 365),
	  "a reported fault is forgotten if no other follows within this time; 0: only by allot uncordon" },
	{ "cordon", SETTINGS_TEXT, AT(cordon), "none", 0, 0,
	  "none, or a comma-separated list of UUIDs of GPUs that take no new tenants" },
	{ "freezer", SETTINGS_SWITCH, AT(is_freezing), "off", 0, 0,
	  "on or off: containers that do not use the allot library are frozen at their start while GPU memory is short" },
	{ "freeze_threshold", SETTINGS_SIZE, AT(freeze_threshold_bytes), "2GiB", MIB, 1048576 * GIB,
	  "with freezer = on: containers that start are frozen while a GPU has less free memory than this" },
	{ "freeze_only", SETTINGS_TEXT, AT(freeze_only), "*", 0, 0,
	  "with freezer = on: comma-separated patterns of cgroups; only matching containers are frozen" },
	{ "freeze_never", SETTINGS_TEXT, AT(freeze_never), "none", 0, 0,
	  "with freezer = on: none, or comma-separated patterns of cgroups; matching containers are never frozen" },
	{ "guard_devices", SETTINGS_TEXT, AT(guard_devices), "off", 0, 0,
	  "on: in login sessions only tenants may open GPUs; or names of users, by comma, who may open them too; or off",
	  .check = command_cgroups_check_guard },
	{ "metrics_listen", SETTINGS_TEXT, AT(metrics_listen), "off", 0, 0,
	  "address of the metrics endpoint (HTTP): off, 127.0.0.1:9400, [::1]:9400 or unix:/path",
	  .check = check_address },
	{ "metrics_token_file", SETTINGS_TEXT, AT(metrics_token_file), "none", 0, 0,
	  "file with the bearer token that readers of the metrics must send; none: no token is needed" },
	{ "metrics_tls_certificate", SETTINGS_PLACE, AT(metrics_tls_certificate), "none", 0, 0,
	  "PEM file with the certificate of the metrics endpoint, which then uses TLS only; none: no TLS" },
	{ "metrics_tls_key", SETTINGS_PLACE, AT(metrics_tls_key), "none", 0, 0,
	  "PEM file with the private key of metrics_tls_certificate" },
	{ "metrics_open", SETTINGS_SWITCH, AT(metrics_open), "off", 0, 0,
	  "on or off: metrics may be read from other machines without a token" },
	{ "metrics_names", SETTINGS_TEXT, AT(metrics_names), "hami", 0, 0,
	  "metric names to serve beside allot's own: none, hami, gpu-manager, or both by comma",
	  .check = check_metrics_names },
	{ "web_listen", SETTINGS_TEXT, AT(web_listen), "off", 0, 0,
	  "address of the web page of GPUs and tenants (HTTP): off, 127.0.0.1:9401, [::1]:9401 or unix:/path",
	  .check = check_address },
	{ "web_token_file", SETTINGS_TEXT, AT(web_token_file), "none", 0, 0,
	  "file with the bearer token that readers of the page must send; none: no token is needed on this machine" },
	{ "web_change_token_file", SETTINGS_TEXT, AT(web_change_token_file), "none", 0, 0,
	  "file with the bearer token that allows changing tenants on the page; none: the page changes nothing" },
	{ "web_tls_certificate", SETTINGS_PLACE, AT(web_tls_certificate), "none", 0, 0,
	  "PEM file with the certificate of the page, which then uses TLS only; none: no TLS" },
	{ "web_tls_key", SETTINGS_PLACE, AT(web_tls_key), "none", 0, 0,
	  "PEM file with the private key of web_tls_certificate" },
	{ "container_engines", SETTINGS_TEXT, AT(container_engines), "auto", 0, 0,
	  "where to ask for names of containers: auto, none, or comma-separated sockets such as docker:/run/docker.sock",
	  .check = check_engines },
	{ "kube_plugin", SETTINGS_SWITCH, AT(is_kube_plugin), "off", 0, 0,
	  "on or off: the system daemon is a device plugin of the kubelet" },
	{ "kube_plugin_dir", SETTINGS_TEXT, AT(kube_plugin_dir), "/var/lib/kubelet/device-plugins",
	  0, 0, "directory of the sockets of the kubelet and its device plugins" },
	{ "kube_pod_resources", SETTINGS_TEXT, AT(kube_pod_resources),
	  "/var/lib/kubelet/pod-resources/kubelet.sock", 0, 0,
	  "the kubelet's pod-resources socket, which tells what pods hold; or none" },
	{ "kube_resource", SETTINGS_TEXT, AT(kube_resource), "nvidia.com/gpu", 0, 0,
	  "resource that pods request in their limits to get GPUs" },
	{ "kube_priority_resource", SETTINGS_TEXT, AT(kube_priority_resource),
	  "nvidia.com/priority", 0, 0,
	  "resource by which pods state a container's priority in their limits: 0 is high, 1 low" },
	{ "kube_vocabulary", SETTINGS_CHOICE, AT(kube_vocabulary), "slices", 0, 0,
	  "how pods request GPUs. slices: equal parts of a GPU; hami: the parts that HAMi's or allot's scheduler wrote to the pod; gpu-manager: vcuda-core and vcuda-memory. The last two need kube_api",
	  .words = vocabulary_words },
	{ "kube_core_resource", SETTINGS_TEXT, AT(kube_core_resource), "tencent.com/vcuda-core", 0,
	  0, "with kube_vocabulary = gpu-manager: resource for hundredths of a GPU's time" },
	{ "kube_memory_resource", SETTINGS_TEXT, AT(kube_memory_resource), "tencent.com/vcuda-memory",
	  0, 0, "with kube_vocabulary = gpu-manager: resource for memory in units of 256 MiB" },
	{ "kube_share", SETTINGS_SWITCH, AT(is_kube_share), "on", 0, 0,
	  "on or off: containers may get parts of GPUs; off: only whole GPUs" },
	{ "kube_slices", SETTINGS_COUNT, AT(kube_slices), "10", 1, 100,
	  "with kube_vocabulary = slices: number of equal parts that each GPU is offered as" },
	{ "kube_dra", SETTINGS_SWITCH, AT(is_kube_dra), "off", 0, 0,
	  "on or off: the system daemon is the DRA driver gpu.allot.dev (needs kube_api)" },
	{ "kube_dra_dir", SETTINGS_TEXT, AT(kube_dra_dir), "/var/lib/kubelet/plugins_registry", 0,
	  0, "directory where the kubelet looks for the sockets of DRA drivers" },
	{ "kube_cdi_dir", SETTINGS_TEXT, AT(kube_cdi_dir), "/var/run/cdi", 0, 0,
	  "directory where the container engine reads CDI specs; those of ResourceClaims are written there" },
	{ "kube_slice_limit", SETTINGS_EITHER, AT(is_kube_slice_hard), "soft", 0, 0,
	  "soft: a slice may also use time that others leave unused; hard: never more than its own",
	  .words = limit_words },
	{ "state_dir", SETTINGS_PLACE, AT(state_dir), "auto", 0, 0,
	  "directory for state that survives a reboot; auto: below /var/lib/allot, or a private daemon's run directory" },
	{ "claim_grace", SETTINGS_DURATION, AT(claim_grace_ns), "5m", S(1), S(86400 * 30),
	  "a claim that its scheduler no longer knows, and that no process uses, is "
	  "released after this time" },
	{ "container_driver", SETTINGS_PLACE, AT(container_driver), "toolkit", 0, 0,
	  "where containers get the driver from: toolkit (NVIDIA's container toolkit), or a directory made by allot mirror" },
	{ "container_library", SETTINGS_PLACE, AT(container_library), "auto", 0, 0,
	  "the liballot.so that containers get; auto: the one installed with this program" },
	{ "library_manifest", SETTINGS_PLACE, AT(library_manifest), "none", 0, 0,
	  "none, or a signed file (signature: FILE.sig) with the SHA-256 sums of the libraries that containers may get" },
	{ "library_keys", SETTINGS_PLACE, AT(library_keys), "none", 0, 0,
	  "PEM file with Ed25519 public keys, one of which must have signed library_manifest" },
	{ "allow_disable_control", SETTINGS_SWITCH, AT(allow_disable_control), "off", 0, 0,
	  "on or off: a container that sets CUDA_DISABLE_CONTROL runs without the library, without quotas" },
	{ "audit_log", SETTINGS_PLACE, AT(audit_log), "off", 0, 0,
	  "off, or a file with a JSON line for each change of a tenant and who made it; reopened on SIGHUP" },
	{ "kube_api", SETTINGS_TEXT, AT(kube_api), "off", 0, 0,
	  "how to reach the Kubernetes API: off, in-cluster, or the path of a kubeconfig" },
	{ "kube_node_name", SETTINGS_TEXT, AT(kube_node_name), "auto", 0, 0,
	  "this node's name in Kubernetes; auto: $NODE_NAME, else this machine's host name" },
	{ "kube_labels", SETTINGS_TEXT, AT(kube_labels), "gpu=on", 0, 0,
	  "comma-separated labels to set on this node, such as gpu=on,rack=a3; or none" },
	{ "kube_live_terms", SETTINGS_SWITCH, AT(is_kube_live_terms), "on", 0, 0,
	  "on or off: annotations of a pod, such as allot.dev/memory, change its running containers" },
	{ "kube_use_window", SETTINGS_DURATION, AT(kube_use_window_ns), "0s", 0, S(600),
	  "publish the use of each GPU over this time, such as 5m, for allot-scheduler's place_by_use; 0s: do not" },
	{ "kube_split_count", SETTINGS_COUNT, AT(kube_split_count), "10", 1, 1000,
	  "maximum number of containers on one GPU, as told to schedulers" },
	{ "kube_memory_scaling", SETTINGS_NUMBER, AT(kube_memory_scaling), "1", 0, 100,
	  "schedulers may promise this many times a GPU's memory", .check = check_above_zero },
	{ "kube_core_scaling", SETTINGS_NUMBER, AT(kube_core_scaling), "1", 0, 100,
	  "schedulers may promise this many times a GPU's time", .check = check_above_zero },
};

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
	return error_set(
		err, ENOENT,
		"%s: is no longer a setting: its value is %s; remove it (developers can change it by allotd --tuning)",
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
				   .elastic = lend_default_config() };
	settings_default(&config_settings, config);
	settings_default(&config_tuning, config);
}

unsigned config_split_count(const struct config *config)
{
	return config->is_kube_share ? config->kube_split_count : 1;
}
