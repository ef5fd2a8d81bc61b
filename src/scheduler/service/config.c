#include "scheduler/service/config.h"

#include <stdio.h>
#include <string.h>

#define MIB (UINT64_C(1) << 20)

struct webhook_terms config_webhook_terms(const struct config *c)
{
	return (struct webhook_terms){
		.scheduler = c->scheduler_name,
		.is_forced = c->is_forced,
		.gpu = c->gpu,
		.memory = c->memory,
		.memory_pct = c->memory_pct,
		.cores = c->cores,
		.priority = c->priority,
		.vcuda_cores = c->vcuda_cores,
		.vcuda_memory = c->vcuda_memory,
		.default_gpus = c->default_gpus,
		.default_cores = c->default_cores,
		.default_memory_bytes = c->default_memory_bytes,
		.runtime_class = c->runtime_class,
		.needs_both = c->needs_both,
		.environment = c->guard_environment,
		.mounts = c->guard_mounts,
		.privileged = c->guard_privileged,
		.host_paths = c->host_paths,
		.guards_others = c->guards_others,
		.images = c->images,
		.namespaces = c->namespaces,
		.has_opt_out = c->has_opt_out,
		.device_class = c->makes_claims ? c->device_class : NULL,
	};
}

struct authorizer config_authorizer(const struct config *c)
{
	struct authorizer authorizer = { .names = c->client_names,
					 .is_local_trusted = c->is_local_trusted };
	if (strcmp(c->client_ca, "none") != 0)
		authorize_parse(c->client_verbs, &authorizer.verbs, NULL);
	if (strcmp(c->token_file, "none") != 0)
		authorizer.token_file = c->token_file;
	return authorizer;
}

struct request_terms config_request_terms(const struct config *c)
{
	return (struct request_terms){
		.count = c->gpu,
		.memory = c->memory,
		.memory_pct = c->memory_pct,
		.cores = c->cores,
		.vcuda = { c->vcuda_cores, c->vcuda_memory },
		.default_count = c->default_gpus,
		.default_memory_mib = (c->default_memory_bytes + MIB - 1) / MIB,
		.default_cores_pct = c->default_cores,
		.node_policy = request_node_policy_names[c->node_policy],
		.gpu_policy = c->gpu_policy,
		.places_by_use = c->places_by_use,
	};
}

bool config_lease(const char *lease, char ret_namespace[CONFIG_NAME_MAX],
		  char ret_name[CONFIG_NAME_MAX])
{
	const char *slash = strchr(lease, '/');
	if (!slash)
		return false;
	snprintf(ret_namespace, CONFIG_NAME_MAX, "%.*s", (int)(slash - lease), lease);
	snprintf(ret_name, CONFIG_NAME_MAX, "%s", slash + 1);
	return true;
}
