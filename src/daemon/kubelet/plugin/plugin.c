#include "daemon/kubelet/plugin/reconcile.h"
#include "daemon/kubelet/plugin/allocate_annotated.h"
#include "daemon/kubelet/plugin/plugin.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/gpu/health/health.h"
#include "daemon/kubelet/plugin/plugin_inside.h"
#include "daemon/api/topology.h"
#include "daemon/kubelet/plugin/allocate_vcuda.h"
#include "kube/util/resource_name.h"

/* In gpu-manager's vocabulary, a slice is a hundredth of a card's time. */
static unsigned slices_per_card(const struct config *config)
{
	switch (config->kube_vocabulary) {
	case KUBE_VOCABULARY_GPU_MANAGER: return VCUDA_CORES_WHOLE;
	case KUBE_VOCABULARY_HAMI: return config_split_count(config);
	default: return config->is_kube_share ? config->kube_slices : 1;
	}
}

struct resource {
	enum endpoint_role role;
	const char *setting, *name;
};

static unsigned list_resources(const struct config *config,
			       struct resource ret[PLUGIN_MAX_ENDPOINTS])
{
	if (config->kube_vocabulary != KUBE_VOCABULARY_GPU_MANAGER) {
		ret[0] = (struct resource){ ENDPOINT_SHARES, "kube_resource",
					    config->kube_resource };
		return 1;
	}
	ret[0] = (struct resource){ ENDPOINT_SHARES, "kube_core_resource",
				    config->kube_core_resource };
	ret[1] = (struct resource){ ENDPOINT_MEMORY, "kube_memory_resource",
				    config->kube_memory_resource };
	return 2;
}

static int check_resources(const struct config *config, struct error *err)
{
	struct resource resource[PLUGIN_MAX_ENDPOINTS];
	unsigned count = list_resources(config, resource);
	for (unsigned i = 0; i < count; i++) {
		int r = resource_name_check(resource[i].name, err);
		if (r < 0)
			return error_add(err, r, "%s", resource[i].setting);
		/* The part after the slash becomes the socket's name, so it must be unique. */
		if (i && !strcmp(strchr(resource[i].name, '/'), strchr(resource[0].name, '/')))
			return error_set(err, EINVAL,
					 "%s: '%.100s': must differ from the name in %s, '%.100s'",
					 resource[i].setting, strchr(resource[i].name, '/') + 1,
					 resource[0].setting, strchr(resource[0].name, '/') + 1);
		r = endpoint_check(config->kube_plugin_dir, resource[i].name, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/*
 * A kube_vocabulary other than slices needs the Kubernetes API, because only the pods there say what their containers get: in
 * annotations (hami), or in the containers' limits (gpu-manager).
 */
static int check_pods_words(const struct config *config, struct error *err)
{
	if (config->kube_vocabulary == KUBE_VOCABULARY_SLICES)
		return 0;
	if (!strcmp(config->kube_api, "off"))
		return error_set(
			err, EINVAL,
			"kube_vocabulary = %s: kube_api must not be off: only the API server "
			"knows which parts of GPUs each container gets",
			config->kube_vocabulary == KUBE_VOCABULARY_HAMI ? "hami" : "gpu-manager");
	if (config->kube_vocabulary == KUBE_VOCABULARY_HAMI &&
	    config->kube_split_count > SLICES_MAX_PER_CARD)
		return error_set(
			err, EINVAL,
			"kube_split_count: '%u': must be at most %d with kube_vocabulary = hami",
			config->kube_split_count, SLICES_MAX_PER_CARD);
	return 0;
}

int plugin_check(const struct config *config, struct error *err)
{
	int r = resource_name_check(config->kube_priority_resource, err);
	if (r < 0)
		return error_add(err, r, "kube_priority_resource");
	if (config->kube_plugin_dir[0] != '/')
		return error_set(err, EINVAL, "kube_plugin_dir: '%.100s': must be a full path",
				 config->kube_plugin_dir);
	if (config->kube_pod_resources[0] != '/' && strcmp(config->kube_pod_resources, "none") != 0)
		return error_set(err, EINVAL,
				 "kube_pod_resources: '%.100s': must be a full path, or none",
				 config->kube_pod_resources);
	r = check_pods_words(config, err);
	return r < 0 ? r : check_resources(config, err);
}

static int prepare_slices(struct plugin *p, struct error *err)
{
	p->slices.card_count = p->node->card_count;
	p->slices.per_card = slices_per_card(&p->node->config);
	p->units.slices = &p->slices;
	for (unsigned i = 0; i < p->slices.card_count; i++) {
		const struct gpu_info *info = &p->node->card[i].info;
		p->slices.uuid[i] = info->uuid_text;
		p->slices.numa[i] = topology_numa(p->node, i);
		p->units.count[i] = units_of(info->memory_bytes);
		if (!slices_can_name(p->slices.uuid[i]))
			return error_set(
				err, EINVAL,
				"GPU %u: UUID '%s' is too long: the kubelet allows at most 63 bytes in a device's name",
				i, p->slices.uuid[i]);
	}
	return plugin_publish(p) < 0 ? error_set_errno(err, ENOMEM, "device plugin") : 0;
}

static void kubelet_started(struct plugin *p)
{
	if (p->vcuda)
		vcuda_kubelet_started(p->vcuda);
}

static void prepare_endpoints(struct plugin *p)
{
	struct resource resource[PLUGIN_MAX_ENDPOINTS];
	p->endpoint_count = list_resources(&p->node->config, resource);
	for (unsigned i = 0; i < p->endpoint_count; i++) {
		p->endpoint[i] = (struct endpoint){ .node = p->node,
						    .plugin = p,
						    .methods = plugin_methods,
						    .method_count = plugin_method_count,
						    .request_most_bytes = plugin_request_most_bytes,
						    .kubelet_started = kubelet_started,
						    .role = resource[i].role,
						    .resource = resource[i].name };
		TAILQ_INIT(&p->endpoint[i].watchers);
	}
}

static int start_parts(struct plugin *p, struct error *err)
{
	const struct config *config = &p->node->config;
	prepare_endpoints(p);
	int r = prepare_slices(p, err);
	if (r >= 0 && config->kube_vocabulary != KUBE_VOCABULARY_SLICES)
		r = annotated_start(p, &p->annotated, err);
	if (r >= 0 && config->kube_vocabulary == KUBE_VOCABULARY_GPU_MANAGER)
		r = vcuda_start(p, &p->vcuda, err);
	if (r >= 0)
		r = plugin_begin_sync(p, err);
	for (unsigned i = 0; r >= 0 && i < p->endpoint_count; i++)
		r = endpoint_start(&p->endpoint[i], config->kube_plugin_dir, err);
	return r;
}

int plugin_start(struct node *node, struct plugin **ret, struct error *err)
{
	if (!node->config.is_kube_plugin)
		return 0;
	if (node->is_private)
		return error_set(
			err, EPERM,
			"kube_plugin = on: must be off in a private daemon: only the system's daemon "
			"(started by root without --private) can be the kubelet's plugin");
	int r = plugin_check(&node->config, err);
	if (r < 0)
		return r;
	struct plugin *p = calloc(1, sizeof(*p));
	if (!p)
		return error_set_errno(err, ENOMEM, "device plugin");
	p->node = node;
	r = start_parts(p, err);
	if (r < 0) {
		plugin_stop(p);
		return error_add(err, r, "device plugin");
	}
	*ret = p;
	return 0;
}

struct plugin *plugin_stop(struct plugin *p)
{
	if (!p)
		return NULL;
	plugin_end_sync(p);
	/* Close the sockets first, to end the calls that `annotated` and `vcuda` still hold. */
	for (unsigned i = 0; i < p->endpoint_count; i++)
		endpoint_stop(&p->endpoint[i]);
	p->vcuda = vcuda_stop(p->vcuda);
	p->annotated = annotated_stop(p->annotated);
	free(p);
	return NULL;
}

static void add_endpoint(struct plugin_figures *f, const struct endpoint *e)
{
	struct registrar_figures r = registrar_figures(e->registrar);
	f->is_registered &= r.is_registered;
	f->registrations += r.registrations;
	f->register_failures += r.failures;
	if (r.last_ns > f->register_ns)
		f->register_ns = r.last_ns;
	f->watchers += e->watcher_count;
}

bool plugin_figures(struct plugin *p, struct plugin_figures *ret)
{
	if (!p)
		return false;
	struct reconcile_figures a = reconcile_figures(p->reconciler);
	struct plugin_figures f = { .is_registered = true,
				    .disagreements = a.now,
				    .disagreements_ever = a.ever,
				    .reattributions = a.reattributions,
				    .allocations = p->allocations,
				    .refused = p->refused,
				    .allocate_ns = p->allocate_ns };
	for (unsigned i = 0; i < p->endpoint_count; i++)
		add_endpoint(&f, &p->endpoint[i]);
	for (unsigned i = 0; i < p->slices.card_count; i++) {
		unsigned devices = p->slices.per_card + (p->vcuda ? p->units.count[i] : 0);
		f.slices += devices;
		if (health_accepts_tenants(&p->node->card[i]))
			f.healthy_slices += devices;
	}
	*ret = f;
	return true;
}
