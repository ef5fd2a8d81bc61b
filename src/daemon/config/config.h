/*
 * The daemon's settings (base/settings/settings.h), in two tables. Settings proper are for
 * operators (daemon/config_table.c). Tuning is for tests, benchmarks and developers
 * (config_tuning.c). Each is read from a file of its own.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/settings/settings.h"
#include "policy/lease/arbiter.h"
#include "policy/lease/rules/lend.h"
#include "policy/safety/violation_policy.h"
#include "policy/space/sharing_mode.h"

#define CONFIG_PATH_MAX SETTINGS_TEXT_MAX

/* Where the kubelet's plugin reads how much of which card a container gets. */
enum kube_vocabulary {
	/* device ids chosen by the kubelet: daemon/kubelet/devices/allocate.h */
	KUBE_VOCABULARY_SLICES,
	/* annotations of the pod, set by a scheduler: daemon/kubelet/plugin/allocate_annotated.h */
	KUBE_VOCABULARY_HAMI,
	/* the pod's limits of two resources: daemon/kubelet/plugin/allocate_vcuda.h */
	KUBE_VOCABULARY_GPU_MANAGER,
};

struct config {
	unsigned log_level; /* index in log_level_words */
	uint64_t linger_ns;
	uint64_t census_ns;
	uint64_t adopt_wait_ns;
	uint64_t adopt_grace_ns;
	uint64_t context_bytes;
	/* GPU time that was used this long ago counts half: policy/memory/fade.h */
	uint64_t use_half_life_ns;
	/* memory is reserved for a tenant that has waited this long: policy/memory/wait_order.h */
	uint64_t wait_patience_ns;
	uint64_t swap_arena_bytes; /* host memory for the arenas of all tenants together; 0: half of the machine's memory */
	/* a tenant's arena is charged to the tenant's memory cgroup instead of the daemon's */
	bool is_arena_tenants;
	uint64_t checkpoint_timeout_ns; /* see daemon/memory/checkpoint/checkpoint.h */
	uint64_t free_depth_ns;         /* limit of work in flight while a tenant runs alone */
	/* limit of work in flight while no other tenant even has a process on the card */
	uint64_t free_depth_alone_ns;
	/* guarantees with a sum above 100 % are refused instead of scaled */
	bool refuse_overcommit;
	char nvml[CONFIG_PATH_MAX];
	struct arbiter_config arbiter;
	bool is_elastic; /* for tenants that do not set this themselves */
	/* a tenant's turns on its cards begin together (daemon/arbitrate/gang_board.h) */
	bool is_gang;
	bool has_turns; /* a tenant's processes take turns within its leases (policy/lease/turns.h) */
	struct elastic_config elastic;
	/* GPU work without the library, and the freezer (daemon/tasks). */
	bool watch_tasks;
	bool is_freezing;
	uint64_t freeze_threshold_bytes;
	uint64_t thaw_settle_ns;
	char freeze_only[CONFIG_PATH_MAX], freeze_never[CONFIG_PATH_MAX];
	char task_nodes[CONFIG_PATH_MAX];
	enum on_violation on_violation; /* for all tenants; a tenant's choice may be stricter */
	enum sharing_way sharing;       /* for tenants that do not set this themselves */
	unsigned mps_clients;           /* maximum number of processes of an MPS server */
	/* Health of the cards (daemon/gpu/health). */
	bool watches_health;
	uint64_t health_recover_ns; /* a reported fault is forgotten after this time; 0: only when a user uncordons the card */
	char health_ignore_xids[CONFIG_PATH_MAX]; /* format: health_parse_ignored() */
	char cordon[CONFIG_PATH_MAX];
	/* Metrics for Prometheus (daemon/export/metrics). */
	char metrics_listen[CONFIG_PATH_MAX], metrics_token_file[CONFIG_PATH_MAX];
	char metrics_tls_certificate[CONFIG_PATH_MAX], metrics_tls_key[CONFIG_PATH_MAX];
	char metrics_names[CONFIG_PATH_MAX]; /* format: metrics_names_parse() */
	bool metrics_open;                   /* no token is needed to read metrics */
	/* The web page (daemon/export/page). */
	char web_listen[CONFIG_PATH_MAX], web_token_file[CONFIG_PATH_MAX];
	char web_change_token_file[CONFIG_PATH_MAX];
	char web_tls_certificate[CONFIG_PATH_MAX], web_tls_key[CONFIG_PATH_MAX];
	char container_engines[CONFIG_PATH_MAX]; /* format: engines_parse() */
	/* The kubelet's device plugin (daemon/kubelet/plugin). */
	bool is_kube_plugin, is_kube_slice_hard;
	bool is_kube_share; /* the kubelet may allocate shares of cards; else only whole cards */
	enum kube_vocabulary kube_vocabulary;
	char kube_plugin_dir[CONFIG_PATH_MAX], kube_resource[CONFIG_PATH_MAX];
	char kube_priority_resource[CONFIG_PATH_MAX];
	char kube_core_resource[CONFIG_PATH_MAX], kube_memory_resource[CONFIG_PATH_MAX];
	char kube_pod_resources[CONFIG_PATH_MAX]; /* a socket, or "none" */
	unsigned kube_slices;                     /* devices shown per GPU */
	/* The DRA driver (daemon/kubelet/dra). */
	bool is_kube_dra;
	char kube_dra_dir[CONFIG_PATH_MAX], kube_cdi_dir[CONFIG_PATH_MAX];
	/* Claims (daemon/containers/claims). */
	char state_dir[CONFIG_PATH_MAX]; /* see daemon/containers/claims/state_dir.h */
	uint64_t claim_grace_ns, claim_look_ns;
	/* "toolkit", or the directory of a driver mirror */
	char container_driver[CONFIG_PATH_MAX];
	char container_library[CONFIG_PATH_MAX]; /* "auto", or the path of liballot.so */
	/* Libraries that may be put into containers (daemon/containers/trust): "none", or files. */
	char library_manifest[CONFIG_PATH_MAX], library_keys[CONFIG_PATH_MAX];
	bool allow_disable_control;
	char audit_log[CONFIG_PATH_MAX]; /* "off", or a file */
	/* HAMi's protocol on the Kubernetes API (daemon/kubelet/kube). */
	char kube_api[CONFIG_PATH_MAX], kube_node_name[CONFIG_PATH_MAX],
		kube_labels[CONFIG_PATH_MAX];
	unsigned kube_split_count;
	bool is_kube_live_terms;
	double kube_memory_scaling, kube_core_scaling;
	/* period over which the cards' use is measured; 0: not published */
	uint64_t kube_use_window_ns;
};

extern const struct settings_table config_settings; /* allotd.conf, and command-line options */
extern const struct settings_table config_tuning;   /* allotd --tuning FILE */

/* Sets every setting and all tuning to its default. */
void config_default(struct config *config);

/* Returns the number of containers that may share a card, as reported to schedulers; 1 if only whole cards are allocated. */
unsigned config_split_count(const struct config *config);

/* Returns the policy's name in the settings. */
const char *config_policy_name(enum arbiter_policy policy);
