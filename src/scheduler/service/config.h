/* The settings of allot-scheduler; config_table.c has a row for each. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/settings/settings.h"
#include "scheduler/request/pod_request.h"
#include "scheduler/service/authorize.h"
#include "scheduler/webhook/webhook.h"

struct config {
	unsigned log_level; /* index in log_level_words */
	char audit_log[SETTINGS_TEXT_MAX];
	char https_listen[SETTINGS_TEXT_MAX], http_listen[SETTINGS_TEXT_MAX];
	char tls_certificate[SETTINGS_TEXT_MAX], tls_key[SETTINGS_TEXT_MAX];
	bool is_http_open;
	char client_ca[SETTINGS_TEXT_MAX], client_names[SETTINGS_TEXT_MAX];
	char client_verbs[SETTINGS_TEXT_MAX], token_file[SETTINGS_TEXT_MAX];
	bool is_local_trusted;
	unsigned explain_nodes; /* nodes that explanations may examine per second; 0: no limit */
	char web_listen[SETTINGS_TEXT_MAX], web_token_file[SETTINGS_TEXT_MAX];
	char web_tls_certificate[SETTINGS_TEXT_MAX], web_tls_key[SETTINGS_TEXT_MAX];
	char web_node_url[SETTINGS_TEXT_MAX];
	unsigned connections;
	uint64_t body_max, idle_ns;
	char kube_api[SETTINGS_TEXT_MAX], lease[SETTINGS_TEXT_MAX],
		kube_scheduler_lease[SETTINGS_TEXT_MAX];
	unsigned node_policy; /* index in request_node_policy_names */
	char gpu_policy[SETTINGS_TEXT_MAX];
	uint64_t bind_limit_ns, lock_expiry_ns, hold_ns, gang_wait_ns, gang_hold_ns,
		gang_patience_ns;
	bool has_gangs, has_filter_events;
	bool places_by_use;
	/* 0: opportunistic pods are evicted only for pods of higher priority */
	uint64_t opportunistic_patience_ns;
	char scheduler_name[SETTINGS_TEXT_MAX], runtime_class[SETTINGS_TEXT_MAX];
	bool is_forced, needs_both, guards_others, has_opt_out;
	bool makes_claims;
	char device_class[SETTINGS_TEXT_MAX];
	char gpu[SETTINGS_TEXT_MAX], memory[SETTINGS_TEXT_MAX], memory_pct[SETTINGS_TEXT_MAX],
		cores[SETTINGS_TEXT_MAX], priority[SETTINGS_TEXT_MAX],
		vcuda_cores[SETTINGS_TEXT_MAX], vcuda_memory[SETTINGS_TEXT_MAX];
	unsigned default_gpus, default_cores;
	uint64_t default_memory_bytes;
	unsigned guard_environment, guard_mounts, guard_privileged; /* enum webhook_guard */
	char host_paths[SETTINGS_TEXT_MAX], images[SETTINGS_TEXT_MAX], namespaces[SETTINGS_TEXT_MAX];
};

extern const struct settings_table config_table;

/* Strings in the results belong to the config. */
struct webhook_terms config_webhook_terms(const struct config *config);
struct authorizer config_authorizer(const struct config *config);
struct request_terms config_request_terms(const struct config *config);

/* Splits a Lease's "namespace/name". False if the text has no '/', which means that no lease is wanted. */
#define CONFIG_NAME_MAX 254
bool config_lease(const char *lease, char ret_namespace[CONFIG_NAME_MAX],
		  char ret_name[CONFIG_NAME_MAX]);
