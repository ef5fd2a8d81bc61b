/*
 * The daemon's settings (base/settings/settings.h), in two tables with a file each: settings for operators
 * (daemon/config_table.c), and tuning for tests, benchmarks and developers (config_tuning.c).
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

/* Setting kube_vocabulary: where the device plugin for the kubelet reads how much of a card a container gets. */
enum kube_vocabulary {
	/* device ids that the kubelet chose: daemon/kubelet/devices/allocate.h */
	KUBE_VOCABULARY_SLICES,
	/* annotations that a scheduler wrote to the pod: daemon/kubelet/plugin/allocate_annotated.h */
	KUBE_VOCABULARY_HAMI,
	/* the pod's limits of two resources: daemon/kubelet/plugin/allocate_vcuda.h */
	KUBE_VOCABULARY_GPU_MANAGER,
};

struct config {
	unsigned log_level;
	uint64_t linger_ns;
	uint64_t census_ns;
	uint64_t adopt_wait_ns;
	uint64_t adopt_grace_ns;
	uint64_t context_bytes;
	/* the weight of used GPU time halves after this time: policy/memory/fade.h */
	uint64_t use_half_life_ns;
	/* memory is reserved for a tenant that has waited this long: policy/memory/wait_order.h */
	uint64_t wait_patience_ns;
	/* most host memory for the swapped-out data (the arenas) of all tenants; 0: half of the machine's memory */
	uint64_t swap_arena_bytes;
	/* a tenant's arena is charged to the tenant's memory cgroup, not to the daemon's */
	bool is_arena_tenants;
	uint64_t checkpoint_timeout_ns; /* see daemon/memory/checkpoint/checkpoint.h */
	/* limit of a tenant's in-flight work while it is the only tenant that computes on the card */
	uint64_t free_depth_ns;
	/* limit of a tenant's in-flight work while no other tenant even has a process on the card */
	uint64_t free_depth_alone_ns;
	/* refuse guarantees with a sum above 100 % instead of scaling them */
	bool refuse_overcommit;
	char nvml[CONFIG_PATH_MAX];
	struct arbiter_config arbiter;
	/* whether tenants without a choice of their own may borrow GPU time that others leave unused: lend.h */
	bool is_elastic;
	/* all processes of a tenant get GPU time at the same moments, on all its cards: daemon/arbitrate/gang_board.h */
	bool is_gang;
	bool has_turns; /* a tenant's processes take turns in its leases (policy/lease/turns.h) */
	struct lend_config elastic;
	/* GPU work without the library, and the freezer: daemon/tasks */
	bool watch_tasks;
	bool is_freezing;
	uint64_t freeze_threshold_bytes;
	uint64_t thaw_settle_ns;
	/* "off", "on", or names of users: daemon/tasks/commands/command_cgroups.h */
	char guard_devices[CONFIG_PATH_MAX];
	char freeze_only[CONFIG_PATH_MAX], freeze_never[CONFIG_PATH_MAX];
	char task_nodes[CONFIG_PATH_MAX];
	/* action on a process that bypasses the library; a tenant may choose a stricter action */
	enum on_violation on_violation;
	enum sharing_way sharing; /* by time or by space, for tenants that choose neither */
	unsigned mps_clients;     /* most processes of one MPS server */
	/* health of the cards: daemon/gpu/health */
	bool watches_health;
	/* a reported fault is forgotten after this time; 0: only when a user uncordons the card */
	uint64_t health_recover_ns;
	char health_ignore_xids[CONFIG_PATH_MAX];
	char cordon[CONFIG_PATH_MAX];
	/* Prometheus metrics: daemon/export/metrics */
	char metrics_listen[CONFIG_PATH_MAX], metrics_token_file[CONFIG_PATH_MAX];
	char metrics_tls_certificate[CONFIG_PATH_MAX], metrics_tls_key[CONFIG_PATH_MAX];
	char metrics_names[CONFIG_PATH_MAX];
	bool metrics_open; /* metrics can be read without a token */
	/* the web page: daemon/export/page */
	char web_listen[CONFIG_PATH_MAX], web_token_file[CONFIG_PATH_MAX];
	char web_change_token_file[CONFIG_PATH_MAX];
	char web_tls_certificate[CONFIG_PATH_MAX], web_tls_key[CONFIG_PATH_MAX];
	char container_engines[CONFIG_PATH_MAX];
	/* the kubelet's device plugin: daemon/kubelet/plugin */
	bool is_kube_plugin, is_kube_slice_hard;
	bool is_kube_share; /* the kubelet may allocate shares of cards, not only whole cards */
	enum kube_vocabulary kube_vocabulary;
	char kube_plugin_dir[CONFIG_PATH_MAX], kube_resource[CONFIG_PATH_MAX];
	char kube_priority_resource[CONFIG_PATH_MAX];
	char kube_core_resource[CONFIG_PATH_MAX], kube_memory_resource[CONFIG_PATH_MAX];
	char kube_pod_resources[CONFIG_PATH_MAX]; /* a socket, or "none" */
	unsigned kube_slices;
	/* the DRA driver: daemon/kubelet/dra */
	bool is_kube_dra;
	char kube_dra_dir[CONFIG_PATH_MAX], kube_cdi_dir[CONFIG_PATH_MAX];
	/* claims: daemon/containers/claims */
	char state_dir[CONFIG_PATH_MAX];
	uint64_t claim_grace_ns, claim_look_ns;
	/* "toolkit", or the directory of a driver mirror */
	char container_driver[CONFIG_PATH_MAX];
	char container_library[CONFIG_PATH_MAX]; /* "auto", or the path of liballot.so */
	/*
	 * Files: the signed list of the libraries that containers may get, and the keys that may sign the list. If both are
	 * "none", containers may get any library (daemon/containers/trust).
	 */
	char library_manifest[CONFIG_PATH_MAX], library_keys[CONFIG_PATH_MAX];
	bool allow_disable_control;
	char audit_log[CONFIG_PATH_MAX]; /* "off", or a file */
	/* HAMi's protocol on the Kubernetes API: daemon/kubelet/kube */
	char kube_api[CONFIG_PATH_MAX], kube_node_name[CONFIG_PATH_MAX],
		kube_labels[CONFIG_PATH_MAX];
	unsigned kube_split_count;
	bool is_kube_live_terms;
	double kube_memory_scaling, kube_core_scaling;
	/* period over which the cards' use is measured; 0: the use is not published */
	uint64_t kube_use_window_ns;
};

/* settings in allotd.conf and on the command line */
extern const struct settings_table config_settings;
extern const struct settings_table config_tuning; /* tuning by allotd --tuning FILE */

void config_default(struct config *config);

/* Returns how many containers may share a card, for schedulers; 1 if only whole cards are allocated. */
unsigned config_split_count(const struct config *config);

const char *config_policy_name(enum arbiter_policy policy);
