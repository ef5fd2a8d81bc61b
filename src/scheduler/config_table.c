/* Defines the table of settings, and checks that concern several settings. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "http/address.h"
#include "kube/util/resource_name.h"
#include "scheduler/page/page.h"
#include "scheduler/request/request_annotations.h"
#include "scheduler/service/config.h"
#include "scheduler/service/config_foreign.h"

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)
#define AT(field) offsetof(struct config, field)
#define S(n) ((n)*NSEC_PER_SEC)

/* The words are in the order of enum webhook_guard. */
static const char *const guards[] = { "allow", "warn", "rewrite", "deny", NULL };

static int check_address(const char *value, struct error *err)
{
	struct address address;
	return address_parse(value, &address, err);
}

/* Uses the parser of pods' annotations, on a made-up pod. */
static int check_policy(const char *value, struct error *err)
{
	struct kube_pod *pod;
	struct request request;
	cleanup_json json_t *object = json_pack(
		"{s:{s:s,s:s,s:s,s:s,s:{s:s}},s:{s:[{s:s,s:{s:{s:s}}}]}}", "metadata", "name", "p",
		"namespace", "n", "uid", "u", "resourceVersion", "1", "annotations",
		REQUEST_GPU_POLICY, value, "spec", "containers", "name", "c", "resources", "limits",
		request_terms_default.count, "1");
	int r = object ? pod_read(object, &pod, err) : error_set(err, EINVAL, "must be text");
	if (r < 0)
		return r;
	r = request_read(pod, &request_terms_default, &request, err);
	if (r >= 0)
		request_free(&request);
	pod_free(pod);
	return r;
}

static int check_verbs(const char *value, struct error *err)
{
	unsigned verbs;
	return authorize_parse(value, &verbs, err);
}

static int check_lease(const char *value, struct error *err)
{
	const char *slash = strchr(value, '/');
	if (!strcmp(value, "none"))
		return 0;
	if (!slash || slash == value || !slash[1] || strchr(slash + 1, '/') ||
	    value[strspn(value, "abcdefghijklmnopqrstuvwxyz0123456789-./")])
		return error_set(
			err, EINVAL,
			"'%.60s': must be none or NAMESPACE/NAME, such as kube-system/allot-scheduler",
			value);
	return 0;
}

static int check_resource(const char *value, struct error *err)
{
	return resource_name_check(value, err);
}

static int check_device_class(const char *value, struct error *err)
{
	if (*value && strlen(value) <= 253 &&
	    !value[strspn(value, "abcdefghijklmnopqrstuvwxyz0123456789-.")])
		return 0;
	return error_set(err, EINVAL,
			 "'%.60s': must be the name of a DeviceClass: small letters, digits, '-' and "
			 "'.'",
			 value);
}

static const struct settings_row rows[] = {
	{ "log_level", SETTINGS_CHOICE, AT(log_level), "info", .words = log_level_words,
	  .help = "minimum severity to log: error, warning, info or debug" },
	{ "audit_log", SETTINGS_PLACE, AT(audit_log), "off",
	  .help = "off, or a file with a JSON line for each pod that is evicted, named as a victim of preemption, or not bound; reopened on SIGHUP" },
	{ "https_listen", SETTINGS_TEXT, AT(https_listen), "off", .check = check_address,
	  .help = "address of the webhook and extender by TLS: off, 0.0.0.0:9443, [::]:9443 or unix:/path" },
	{ "tls_certificate", SETTINGS_PLACE, AT(tls_certificate), "none",
	  .help = "PEM file with the certificate of https_listen, read again when it changes; --issue makes one" },
	{ "tls_key", SETTINGS_PLACE, AT(tls_key), "none",
	  .help = "PEM file with the private key of tls_certificate" },
	{ "http_listen", SETTINGS_TEXT, AT(http_listen), "127.0.0.1:9398", .check = check_address,
	  .help = "address of the webhook and extender without TLS, or off" },
	{ "http_open", SETTINGS_SWITCH, AT(is_http_open), "off",
	  .help = "on or off: http_listen may be an address that other machines can reach" },
	{ "client_ca", SETTINGS_PLACE, AT(client_ca), "none",
	  .help = "none, or a PEM file with certificate authorities: requests in client_verbs need a client certificate signed by one of them; read again when it changes" },
	{ "client_names", SETTINGS_TEXT, AT(client_names), "*",
	  .help = "comma-separated patterns of the names that client certificates may have" },
	{ "client_verbs", SETTINGS_TEXT, AT(client_verbs), "bind", .check = check_verbs,
	  .help = "requests that need a client certificate: none, or a comma-separated list of webhook, filter, prioritize, preempt, bind, explain and metrics" },
	{ "client_local", SETTINGS_SWITCH, AT(is_local_trusted), "off",
	  .help = "on or off: clients of http_listen need no certificate and no token" },
	{ "token_file", SETTINGS_PLACE, AT(token_file), "none",
	  .help = "none, or a file with the bearer token that readers of explanations and metrics must send; read at each request" },
	{ "explain_limit", SETTINGS_COUNT, AT(explain_nodes), "20000", .max = 100000000,
	  .help = "maximum number of nodes to examine per second for explanations of why pods wait; 0: no limit" },
	{ "web_listen", SETTINGS_TEXT, AT(web_listen), "off", .check = check_address,
	  .help = "address of the web page of all nodes, GPUs and pods (HTTP): off, 127.0.0.1:9397, [::1]:9397 or unix:/path" },
	{ "web_token_file", SETTINGS_PLACE, AT(web_token_file), "none",
	  .help = "file with the bearer token that readers of the page must send; none: no token is needed on this machine" },
	{ "web_tls_certificate", SETTINGS_PLACE, AT(web_tls_certificate), "none",
	  .help = "PEM file with the certificate of the page, which then uses TLS only, read again when it changes; none: no TLS" },
	{ "web_tls_key", SETTINGS_PLACE, AT(web_tls_key), "none",
	  .help = "PEM file with the private key of web_tls_certificate" },
	{ "web_node_url", SETTINGS_TEXT, AT(web_node_url), "none",
	  .help = "none, or the URL of the page of each node's allotd, for links to it, such as http://{node}:9401/" },
	{ "connections", SETTINGS_COUNT, AT(connections), "256", .min = 4, .max = 4096,
	  .help = "maximum number of clients connected at the same time" },
	{ "body_limit", SETTINGS_SIZE, AT(body_max), "8MiB", .min = 64 * KIB, .max = 256 * MIB,
	  .help = "maximum size of a request's body; larger ones are refused" },
	{ "idle_limit", SETTINGS_DURATION, AT(idle_ns), "120s", .min = S(1), .max = S(3600),
	  .help = "a connection without requests is closed after this time" },
	{ "kube_api", SETTINGS_TEXT, AT(kube_api), "off",
	  .help = "how to reach the Kubernetes API: in-cluster, or the path of a kubeconfig; off: only the webhook works" },
	{ "lease", SETTINGS_TEXT, AT(lease), "kube-system/allot-scheduler", .check = check_lease,
	  .help = "the Lease (NAMESPACE/NAME) by which one of several replicas becomes the leader; none: there is one replica" },
	{ "kube_scheduler_lease", SETTINGS_TEXT, AT(kube_scheduler_lease), "none",
	  .check = check_lease,
	  .help = "none, or the Lease by which the kube-schedulers beside the replicas elect a leader: the replica beside that leader answers allot explain" },
	{ "node_policy", SETTINGS_CHOICE, AT(node_policy), "binpack",
	  .words = request_node_policy_names,
	  .help = "which nodes to fill first, if the pod does not say: binpack, spread or fragmentation" },
	{ "gpu_policy", SETTINGS_TEXT, AT(gpu_policy), "spread", .check = check_policy,
	  .help = "which GPUs to fill first, if the pod does not say: a comma-separated list of binpack, spread, topology-aware, numa, mutex and fragmentation" },
	{ "bind_limit", SETTINGS_DURATION, AT(bind_limit_ns), "25s", .min = S(1), .max = S(600),
	  .help = "maximum time for one binding, including the wait for the node's lock" },
	{ "lock_expiry", SETTINGS_DURATION, AT(lock_expiry_ns), "300s", .min = S(10),
	  .max = S(3600), .help = "another pod's lock of a node is taken over after this time" },
	{ "hold_limit", SETTINGS_DURATION, AT(hold_ns), "300s", .min = S(10), .max = S(3600),
	  .help = "maximum time that GPUs stay reserved for a pod that is not bound" },
	{ "filter_events", SETTINGS_SWITCH, AT(has_filter_events), "on",
	  .help = "on or off: events of a pod say which nodes fit it, or why none does" },
	{ "place_by_use", SETTINGS_SWITCH, AT(places_by_use), "off",
	  .help = "on or off: pods that ask for it are placed by the measured use of GPUs, not by what was promised to other pods" },
	{ "filler_patience", SETTINGS_DURATION, AT(opportunistic_patience_ns), "60s", .min = 0,
	  .max = S(86400),
	  .help = "if a pod placed by use gets too little GPU time for this long, as many such pods as needed are evicted; 0: only for pods of higher priority" },
	{ "gangs", SETTINGS_SWITCH, AT(has_gangs), "on",
	  .help = "on or off: pods of one group (gang) are placed all together or not at all" },
	{ "gang_wait", SETTINGS_DURATION, AT(gang_wait_ns), "12s", .min = S(1), .max = S(120),
	  .help = "a binding waits this long for the other pods of its gang" },
	{ "gang_limit", SETTINGS_DURATION, AT(gang_hold_ns), "30s", .min = S(2), .max = S(600),
	  .help = "maximum time that GPUs stay reserved for a gang whose pods are not all ready to be bound" },
	{ "gang_patience", SETTINGS_DURATION, AT(gang_patience_ns), "300s", .min = 0, .max = S(86400),
	  .help = "a gang that has waited for room this long gets nodes kept free of single pods; 0: never" },
	{ "scheduler_name", SETTINGS_TEXT, AT(scheduler_name), "allot-scheduler",
	  .help = "schedulerName that pods with GPUs get" },
	{ "force_scheduler", SETTINGS_SWITCH, AT(is_forced), "off",
	  .help = "on or off: pods that name another scheduler get scheduler_name too" },
	{ "runtime_class", SETTINGS_TEXT, AT(runtime_class), "none",
	  .help = "runtimeClassName that pods with GPUs get if they have none; or none" },
	{ "gpu_resource", SETTINGS_TEXT, AT(gpu), "nvidia.com/gpu", .check = check_resource,
	  .help = "resource for the number of GPUs" },
	{ "memory_resource", SETTINGS_TEXT, AT(memory), "nvidia.com/gpumem",
	  .check = check_resource, .help = "resource for MiB of each GPU" },
	{ "memory_percent_resource", SETTINGS_TEXT, AT(memory_pct), "nvidia.com/gpumem-percentage",
	  .check = check_resource, .help = "resource for percent of each GPU's memory" },
	{ "cores_resource", SETTINGS_TEXT, AT(cores), "nvidia.com/gpucores",
	  .check = check_resource, .help = "resource for percent of each GPU's time" },
	{ "priority_resource", SETTINGS_TEXT, AT(priority), "nvidia.com/priority",
	  .check = check_resource, .help = "resource for a container's priority: 0 is high, 1 low" },
	{ "vcuda_core_resource", SETTINGS_TEXT, AT(vcuda_cores), "tencent.com/vcuda-core",
	  .check = check_resource, .help = "gpu-manager's resource for hundredths of a GPU's time" },
	{ "vcuda_memory_resource", SETTINGS_TEXT, AT(vcuda_memory), "tencent.com/vcuda-memory",
	  .check = check_resource, .help = "gpu-manager's resource for memory in units of 256 MiB" },
	{ "default_gpus", SETTINGS_COUNT, AT(default_gpus), "1", .min = 1, .max = 16,
	  .help = "GPUs of a container that requests only memory or cores" },
	{ "default_memory", SETTINGS_SIZE, AT(default_memory_bytes), "0", .max = 1024 * GIB,
	  .help = "memory of each GPU for a container that does not say; 0: all of it" },
	{ "default_cores", SETTINGS_COUNT, AT(default_cores), "0", .max = 100,
	  .help = "percent of each GPU's time for a container that does not say; 0: no guarantee" },
	{ "require_both", SETTINGS_SWITCH, AT(needs_both), "off",
	  .help = "on or off: pods must request both memory and cores" },
	{ "guard_environment", SETTINGS_CHOICE, AT(guard_environment), "allow", .words = guards,
	  .help = "environment variables that bypass the limits, such as LD_PRELOAD: allow, warn, rewrite (remove them) or deny the pod" },
	{ "guard_mounts", SETTINGS_CHOICE, AT(guard_mounts), "allow", .words = guards,
	  .help = "volumes of host paths with devices, sockets or controls of the node, and mounts over allot's files: allow, warn, rewrite or deny" },
	{ "host_paths", SETTINGS_TEXT, AT(host_paths), "/dev/shm*,/dev/hugepages*,/dev/infiniband*",
	  .help = "comma-separated patterns of host paths that guard_mounts lets pass" },
	{ "guard_privileged", SETTINGS_CHOICE, AT(guard_privileged), "deny", .words = guards,
	  .help = "privileged containers with GPUs, capabilities that reach the node, hostPID and hostIPC: allow, warn, rewrite or deny" },
	{ "guard_others", SETTINGS_SWITCH, AT(guards_others), "off",
	  .help = "on or off: the three guards also apply to pods that request no GPU" },
	{ "images", SETTINGS_TEXT, AT(images), "*",
	  .help = "comma-separated patterns of images that containers with GPUs may use" },
	{ "skip_namespaces", SETTINGS_TEXT, AT(namespaces), "kube-system",
	  .help = "comma-separated patterns of namespaces whose pods the webhook ignores; or none" },
	{ "pod_opt_out", SETTINGS_SWITCH, AT(has_opt_out), "on",
	  .help = "on or off: the webhook ignores a pod labelled allot.dev/webhook or hami.io/webhook: ignore" },
	{ "make_claims", SETTINGS_SWITCH, AT(makes_claims), "off",
	  .help = "on or off: requests in a pod's limits become ResourceClaims, which the cluster's own scheduler places" },
	{ "device_class", SETTINGS_TEXT, AT(device_class), "gpu.allot.dev",
	  .check = check_device_class, .help = "with make_claims: the DeviceClass of these claims" },
};
#define ROW_COUNT (sizeof(rows) / sizeof(rows[0]))

static int check_tls(const struct config *c, struct error *err)
{
	bool has_certificate = strcmp(c->tls_certificate, "none") != 0;
	bool has_key = strcmp(c->tls_key, "none") != 0;
	if (has_certificate != has_key)
		return error_set(err, EINVAL, "%s: must be set too, since %s is set",
				 has_key ? "tls_certificate" : "tls_key",
				 has_key ? "tls_key" : "tls_certificate");
	if (strcmp(c->https_listen, "off") != 0 && !has_certificate)
		return error_set(
			err, EINVAL,
			"https_listen: '%.60s' needs tls_certificate and tls_key; 'allot-scheduler --issue DIR' makes both",
			c->https_listen);
	return 0;
}

/* Rejects requirements that no client could meet, and settings that admit more clients than intended. */
static int check_clients(const struct config *c, struct error *err)
{
	bool has_ca = strcmp(c->client_ca, "none") != 0;
	if (has_ca && !strcmp(c->https_listen, "off"))
		return error_set(
			err, EINVAL,
			"client_ca: '%.60s': needs https_listen, since client certificates work only with TLS",
			c->client_ca);
	if (!has_ca && strcmp(c->client_names, "*") != 0)
		return error_set(err, EINVAL,
				 "client_names: '%.60s': needs client_ca, since the names are those in "
				 "client certificates",
				 c->client_names);
	if (c->is_local_trusted && c->is_http_open)
		return error_set(
			err, EINVAL,
			"client_local: must be off while http_open is on: "
			"otherwise, other machines could use http_listen without a certificate or a token");
	return 0;
}

/* Rejects two settings that name the same resource. */
static int check_resources(const struct config *c, struct error *err)
{
	for (size_t i = 0; i < ROW_COUNT; i++)
		for (size_t k = 0; k < i && rows[i].check == check_resource; k++)
			if (rows[k].check == check_resource &&
			    !strcmp((const char *)c + rows[i].offset,
				    (const char *)c + rows[k].offset))
				return error_set(err, EINVAL,
						 "%s: '%.100s': is already the value of %s",
						 rows[i].name, (const char *)c + rows[i].offset,
						 rows[k].name);
	return 0;
}

static int check_claims(const struct config *c, struct error *err)
{
	if (!c->makes_claims || strcmp(c->kube_api, "off") != 0)
		return 0;
	return error_set(err, EINVAL,
			 "make_claims: on: needs kube_api, since allot-scheduler makes the claims' "
			 "templates in the Kubernetes API");
}

/* A gang's reservations must outlast the wait for the bind calls of all its pods. */
static int check_gangs(const struct config *c, struct error *err)
{
	if (c->gang_hold_ns >= c->gang_wait_ns)
		return 0;
	return error_set(err, EINVAL, "gang_limit: %.0f s: must be at least gang_wait, %.0f s",
			 (double)c->gang_hold_ns / (double)NSEC_PER_SEC,
			 (double)c->gang_wait_ns / (double)NSEC_PER_SEC);
}

static int check(const struct config *c, struct error *err)
{
	struct address address;
	int r = check_tls(c, err);
	if (r >= 0)
		r = check_clients(c, err);
	if (r >= 0)
		r = check_gangs(c, err);
	if (r >= 0)
		r = check_claims(c, err);
	if (r >= 0)
		r = cluster_page_check(c, err);
	if (r >= 0)
		r = check_resources(c, err);
	if (r >= 0)
		r = address_parse(c->http_listen, &address, err);
	if (r < 0)
		return r;
	if (!c->is_http_open && !address_is_local(&address))
		return error_set(
			err, EACCES,
			"http_listen: '%.60s' can be reached from other machines without TLS: use https_listen, or set http_open = on",
			c->http_listen);
	if (!strcmp(c->https_listen, "off") && !strcmp(c->http_listen, "off"))
		return error_set(
			err, EINVAL,
			"https_listen and http_listen are both off: set at least one of them");
	return 0;
}

const struct settings_table config_table = {
	.row = rows,
	.count = ROW_COUNT,
	.check = (const settings_check[]){ check, NULL },
	.alias = config_aliases,
};
