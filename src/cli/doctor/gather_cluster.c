/* Asks the API server about this node, with the credentials of --kubeconfig, the daemon, the kubelet or this pod. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "client/client.h"
#include "cli/doctor/gather.h"
#include "cli/explain/api.h"

#define KUBELET_CONFIG "/etc/kubernetes/kubelet.conf"

/* Takes the name from --node; else as allotd does: from the setting kube_node_name, else $NODE_NAME, else the host name. */
static void find_node(struct doctor *d, char ret[FACT_TEXT_MAX])
{
	const char *variable = getenv("NODE_NAME");

	if (d->node) {
		snprintf(ret, FACT_TEXT_MAX, "%s", d->node);
		return;
	}
	if (gather_setting(&d->host, ALLOTD_CONF, "kube_node_name", "auto", ret) &&
	    strcmp(ret, "auto") != 0)
		return;
	if (variable && *variable)
		snprintf(ret, FACT_TEXT_MAX, "%s", variable);
	else if (gethostname(ret, FACT_TEXT_MAX - 1) < 0)
		ret[0] = '\0';
	for (char *c = ret; *c; c++)
		*c = (char)tolower((unsigned char)*c);
}

int gather_access(struct doctor *d, struct kube_access *ret, struct error *err)
{
	char setting[FACT_TEXT_MAX];
	int r;

	gather_setting(&d->host, ALLOTD_CONF, "kube_api", "off", setting);
	if (d->kubeconfig)
		r = access_read_config(d->kubeconfig, ret, err);
	else if (setting[0] == '/')
		r = access_read_config(setting, ret, err);
	else if (host_has(&d->host, KUBELET_CONFIG) && access(KUBELET_CONFIG, R_OK) == 0)
		r = access_read_config(KUBELET_CONFIG, ret, err);
	else
		r = access_of_this_pod(ret, err);
	return r == -ENOENT && !d->kubeconfig ? 0 : r < 0 ? r : 1;
}

static void copy(const json_t *from, const char *key, char ret[FACT_NAME_MAX])
{
	snprintf(ret, FACT_NAME_MAX, "%.*s", FACT_NAME_MAX - 1, json_string_or(from, key, ""));
}

static void read_node(const json_t *node, struct facts_cluster *c)
{
	const json_t *spec = json_object_get(node, "spec");
	const json_t *taints = json_object_get(spec, "taints");

	c->is_cordoned = json_is_true(json_object_get(spec, "unschedulable"));
	for (size_t i = 0; i < json_array_size(taints) && c->taints < FACTS_MAX; i++) {
		const json_t *one = json_array_get(taints, i);
		const char *key = json_string_value(json_object_get(one, "key"));
		/* Skip the taint that a cordon sets: is_cordoned tells of it. */
		if (!key || !strcmp(key, "node.kubernetes.io/unschedulable"))
			continue;
		struct facts_taint *t = &c->taint[c->taints++];
		copy(one, "key", t->key);
		copy(one, "value", t->value);
		copy(one, "effect", t->effect);
	}
}

void gather_cluster(struct doctor *d, struct facts *facts)
{
	struct facts_cluster *c = &facts->cluster;
	struct kube_access access = { 0 };
	cleanup_json json_t *node = NULL;
	char path[FACT_TEXT_MAX + 32];
	struct error err = { 0 };
	int status = 0;

	if (!host_is_local(&d->host))
		return;
	int r = gather_access(d, &access, &err);
	if (r == 0)
		return;
	c->is_asked = true;
	find_node(d, c->node);
	snprintf(path, sizeof(path), "/api/v1/nodes/%s", c->node);
	if (r > 0)
		r = api_get(&access, path, NULL, &status, &node, &err);
	access_free(&access);
	if (r < 0)
		snprintf(c->fault, sizeof(c->fault), "%.*s", FACT_TEXT_MAX - 1, err.text);
	else
		read_node(node, c);
}
