/* The daemon's settings, in two tables: for operators (daemon/config_table.c), and for developers (config_tuning.c). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/settings/settings.h"
#include "policy/lease/arbiter.h"
#include "policy/lease/rules/lend.h"
#include "policy/safety/violation_policy.h"
#include "policy/space/sharing_mode.h"

#define CONFIG_PATH_MAX SETTINGS_TEXT_MAX

/* Setting kube_vocabulary: where the device plugin for the kubelet reads how much of a GPU a container gets. */
enum kube_vocabulary {
	/* Device ids that the kubelet chose: daemon/kubelet/devices/allocate.h. */
	KUBE_VOCABULARY_SLICES,
	/* Annotations that a scheduler wrote to the pod: daemon/kubelet/plugin/allocate_annotated.h. */
	KUBE_VOCABULARY_HAMI,
	/* The pod's limits of two resources: daemon/kubelet/plugin/allocate_vcuda.h. */
	KUBE_VOCABULARY_GPU_MANAGER,
};

/* The row of each member in config_table.c or config_tuning.c says what the member means. */
struct config {
	unsigned log_level;
	uint64_t linger_ns;
	uint64_t census_ns;
	uint64_t adopt_wait_ns;
	uint64_t adopt_grace_ns;
	uint64_t context_bytes;
	uint64_t use_half_life_ns;
	uint64_t wait_patience_ns;
	uint64_t swap_arena_bytes;
	bool is_arena_tenants;
	uint64_t checkpoint_timeout_ns;
	uint64_t free_depth_ns;
	uint64_t free_depth_alone_ns;
	bool refuse_overcommit;
	char nvml[CONFIG_PATH_MAX];
	struct arbiter_config arbiter;
	bool is_elastic;
	bool is_gang;
	bool has_turns;
	struct lend_config elastic;
	bool watch_tasks;
	bool is_freezing;
	uint64_t freeze_threshold_bytes;
	uint64_t thaw_settle_ns;
	char guard_devices[CONFIG_PATH_MAX];
	char freeze_only[CONFIG_PATH_MAX], freeze_never[CONFIG_PATH_MAX];
	char task_nodes[CONFIG_PATH_MAX];
	enum on_violation on_violation;
	enum sharing_way sharing;
	unsigned mps_clients;
	bool watches_health;
	uint64_t health_recover_ns;
	char health_ignore_xids[CONFIG_PATH_MAX];
	char cordon[CONFIG_PATH_MAX];
	char metrics_listen[CONFIG_PATH_MAX], metrics_token_file[CONFIG_PATH_MAX];
	char metrics_tls_certificate[CONFIG_PATH_MAX], metrics_tls_key[CONFIG_PATH_MAX];
	char metrics_names[CONFIG_PATH_MAX];
	bool metrics_open;
	char web_listen[CONFIG_PATH_MAX], web_token_file[CONFIG_PATH_MAX];
	char web_change_token_file[CONFIG_PATH_MAX];
	char web_tls_certificate[CONFIG_PATH_MAX], web_tls_key[CONFIG_PATH_MAX];
	char container_engines[CONFIG_PATH_MAX];
	bool is_kube_plugin, is_kube_slice_hard;
	bool is_kube_share;
	enum kube_vocabulary kube_vocabulary;
	char kube_plugin_dir[CONFIG_PATH_MAX], kube_resource[CONFIG_PATH_MAX];
	char kube_priority_resource[CONFIG_PATH_MAX];
	char kube_core_resource[CONFIG_PATH_MAX], kube_memory_resource[CONFIG_PATH_MAX];
	char kube_pod_resources[CONFIG_PATH_MAX];
	unsigned kube_slices;
	bool is_kube_dra;
	char kube_dra_dir[CONFIG_PATH_MAX], kube_cdi_dir[CONFIG_PATH_MAX];
	char state_dir[CONFIG_PATH_MAX];
	uint64_t claim_grace_ns, claim_look_ns;
	char container_driver[CONFIG_PATH_MAX];
	char container_library[CONFIG_PATH_MAX];
	char library_manifest[CONFIG_PATH_MAX], library_keys[CONFIG_PATH_MAX];
	bool allow_disable_control;
	char audit_log[CONFIG_PATH_MAX];
	char kube_api[CONFIG_PATH_MAX], kube_node_name[CONFIG_PATH_MAX],
		kube_labels[CONFIG_PATH_MAX];
	unsigned kube_split_count;
	bool is_kube_live_terms;
	double kube_memory_scaling, kube_core_scaling;
	uint64_t kube_use_window_ns;
};

extern const struct settings_table config_settings;
extern const struct settings_table config_tuning;

void config_default(struct config *config);

/* For schedulers: how many containers may share a GPU. 1 if only whole GPUs are allocated. */
unsigned config_split_count(const struct config *config);

const char *config_policy_name(enum arbiter_policy policy);
