/*
 * The daemon's settings (base/settings/settings.h), in two tables, each read from a file of its own. Settings are an operator's to change
 * (daemon/config_table.c). Tuning is for tests, benches and developers (config_tuning.c).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/settings/settings.h"
#include "policy/lease/arbiter.h"
#include "policy/lease/rules/elastic.h"
#include "policy/safety/violation_policy.h"
#include "policy/space/choice.h"

#define CONFIG_PATH_MAX SETTINGS_TEXT_MAX

/* What says how much of which card a container gets. */
enum kube_vocabulary {
	KUBE_VOCABULARY_SLICES, /* the ids that the kubelet picks: daemon/kubelet/devices/allocate.h */
	KUBE_VOCABULARY_HAMI, /* the pod's annotations, by a scheduler: daemon/kubelet/plugin/allocate_annotated.h */
	KUBE_VOCABULARY_GPU_MANAGER, /* the pod's limits, of two resources: daemon/kubelet/plugin/vcuda.h */
};

struct config {
	unsigned log_level; /* the place among log_level_words */
	uint64_t linger_ns;
	uint64_t census_ns;
	uint64_t adopt_wait_ns;
	uint64_t adopt_grace_ns;
	uint64_t context_bytes;
	uint64_t use_half_life_ns; /* of GPU time used: policy/memory/fade.h */
	uint64_t wait_patience_ns; /* who waits for memory this long is kept free for: policy/memory/order.h */
	uint64_t swap_arena_bytes; /* of all tenants together; 0: half of the machine's memory */
	bool is_arena_tenants;     /* charged to the tenant's memory cgroup, not to the daemon's */
	uint64_t checkpoint_timeout_ns; /* see daemon/memory/checkpoint/checkpoint.h */
	uint64_t free_depth_ns;         /* bound of work in flight while a tenant runs alone */
	uint64_t free_depth_alone_ns;   /* the same while no other has a process on the card */
	bool refuse_overcommit;         /* guarantees that sum over 100 % are refused, not scaled */
	char nvml[CONFIG_PATH_MAX];
	struct arbiter_config arbiter;
	bool is_elastic; /* of tenants that don't say */
	bool is_gang;    /* turns on several cards at the same time (daemon/arbitrate/gang.h) */
	bool has_turns; /* a tenant's processes take turns within its leases (policy/lease/turns.h) */
	struct elastic_config elastic;
	/* GPU work without the library, and the freezer (daemon/tasks). */
	bool watch_tasks;
	bool is_freezing;
	uint64_t freeze_threshold_bytes;
	uint64_t thaw_settle_ns;
	char freeze_only[CONFIG_PATH_MAX], freeze_never[CONFIG_PATH_MAX];
	char task_nodes[CONFIG_PATH_MAX];
	enum on_violation on_violation; /* of all tenants, at least */
	enum sharing_way sharing;       /* of tenants that do not say */
	unsigned mps_clients;           /* processes that one MPS server takes */
	/* Health of the cards (daemon/gpu/health). */
	bool watches_health;
	uint64_t health_recover_ns; /* a reported fault is over after that long; 0: by hand alone */
	char health_ignore_xids[CONFIG_PATH_MAX]; /* as health_parse_ignored() takes it */
	char cordon[CONFIG_PATH_MAX];
	/* Metrics for Prometheus (daemon/export/metrics). */
	char metrics_listen[CONFIG_PATH_MAX], metrics_token_file[CONFIG_PATH_MAX];
	char metrics_tls_certificate[CONFIG_PATH_MAX], metrics_tls_key[CONFIG_PATH_MAX];
	char metrics_names[CONFIG_PATH_MAX]; /* as metrics_names_parse() takes it */
	bool metrics_open;                   /* everyone who can reach it may read */
	/* The web page (daemon/export/page). */
	char web_listen[CONFIG_PATH_MAX], web_token_file[CONFIG_PATH_MAX];
	char web_change_token_file[CONFIG_PATH_MAX];
	char web_tls_certificate[CONFIG_PATH_MAX], web_tls_key[CONFIG_PATH_MAX];
	char container_engines[CONFIG_PATH_MAX]; /* as engines_parse() takes it */
	/* The kubelet's device plugin (daemon/kubelet/plugin). */
	bool is_kube_plugin, is_kube_slice_hard;
	bool is_kube_share; /* parts of cards are given out; else whole ones alone */
	enum kube_vocabulary kube_vocabulary;
	char kube_plugin_dir[CONFIG_PATH_MAX], kube_resource[CONFIG_PATH_MAX];
	char kube_priority_resource[CONFIG_PATH_MAX];
	char kube_core_resource[CONFIG_PATH_MAX], kube_memory_resource[CONFIG_PATH_MAX];
	char kube_pod_resources[CONFIG_PATH_MAX]; /* a socket; "none" */
	unsigned kube_slices;                     /* so many devices each GPU is shown as */
	/* The DRA driver (daemon/kubelet/dra). */
	bool is_kube_dra;
	char kube_dra_dir[CONFIG_PATH_MAX], kube_cdi_dir[CONFIG_PATH_MAX];
	/* Claims (daemon/containers/claims). */
	char state_dir[CONFIG_PATH_MAX]; /* see daemon/containers/claims/state_dir.h */
	uint64_t claim_grace_ns;
	char container_driver[CONFIG_PATH_MAX];  /* "toolkit", or a mirror's directory */
	char container_library[CONFIG_PATH_MAX]; /* "auto", or liballot.so's path */
	/* Which library may be given to containers (daemon/containers/trust): "none", or files. */
	char library_manifest[CONFIG_PATH_MAX], library_keys[CONFIG_PATH_MAX];
	bool allow_disable_control;
	char audit_log[CONFIG_PATH_MAX]; /* "off", or a file */
	/* HAMi's protocol on the Kubernetes API (daemon/kubelet/kube). */
	char kube_api[CONFIG_PATH_MAX], kube_node_name[CONFIG_PATH_MAX],
		kube_labels[CONFIG_PATH_MAX];
	unsigned kube_split_count;
	bool is_kube_live_terms;
	double kube_memory_scaling, kube_core_scaling;
	uint64_t kube_use_window_ns; /* over which the cards' use is measured; 0: it is not published */
};

extern const struct settings_table config_settings; /* allotd.conf, and options of the command line */
extern const struct settings_table config_tuning;   /* allotd --tuning FILE */

/* Every setting and all tuning at its default. */
void config_default(struct config *config);

/* Containers that may share a card, as schedulers are told: 1 where whole cards alone are given out. */
unsigned config_split_count(const struct config *config);

/* As the setting calls it. */
const char *config_policy_name(enum arbiter_policy policy);
