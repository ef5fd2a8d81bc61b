/* The table of settings, and the checks that concern more than one of them. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "http/address.h"
#include "kube/util/object.h"
#include "kube/util/resource_name.h"
#include "scheduler/page/page.h"
#include "scheduler/request/request_wishes.h"
#include "scheduler/service/config.h"
#include "scheduler/service/config_foreign.h"

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)
#define AT(field) offsetof(struct config, field)
#define S(n) ((n)*NSEC_PER_SEC)

/* In the order of enum webhook_guard. */
static const char *const guards[] = { "allow", "warn", "rewrite", "deny", NULL };

static int check_address(const char *value, struct error *err)
{
	struct address address;
	return address_parse(value, &address, err);
}

/* A pod that says so is read as any other. */
static int check_policy(const char *value, struct error *err)
{
	struct kube_pod *pod;
	struct request request;
	cleanup_object json_t *object = json_pack(
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
			"'%.60s': must be none, or a namespace and a name, as kube-system/allot-scheduler",
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
	  .help = "error, warning, info or debug" },
	{ "audit_log", SETTINGS_PLACE, AT(audit_log), "off",
	  .help = "off, or a file: which pods were sent away, named as victims or not bound, a JSON line each; reopened on SIGHUP" },
	{ "https_listen", SETTINGS_TEXT, AT(https_listen), "off", .check = check_address,
	  .help = "where it is served by TLS: off, 0.0.0.0:9443, [::]:9443, unix:/path" },
	{ "tls_certificate", SETTINGS_PLACE, AT(tls_certificate), "none",
	  .help = "PEM file of the certificate, read anew when it changes; --issue makes one" },
	{ "tls_key", SETTINGS_PLACE, AT(tls_key), "none",
	  .help = "PEM file of the certificate's key" },
	{ "http_listen", SETTINGS_TEXT, AT(http_listen), "127.0.0.1:9398", .check = check_address,
	  .help = "where it is served without TLS; or off" },
	{ "http_open", SETTINGS_SWITCH, AT(is_http_open), "off",
	  .help = "on or off: without TLS other machines may reach it as well" },
	{ "client_ca", SETTINGS_PLACE, AT(client_ca), "none",
	  .help = "PEM file of the certificates that vouch for clients, read anew when it changes: who asks for client_verbs must show one of theirs" },
	{ "client_names", SETTINGS_TEXT, AT(client_names), "*",
	  .help = "patterns, by commas, of the names that these may have" },
	{ "client_verbs", SETTINGS_TEXT, AT(client_verbs), "bind", .check = check_verbs,
	  .help = "what needs client_ca: none, or of webhook, filter, prioritize, preempt, bind, explain and metrics, by commas" },
	{ "client_local", SETTINGS_SWITCH, AT(is_local_trusted), "off",
	  .help = "on or off: who asks at http_listen, of this machine or pod, needs neither certificate nor token" },
	{ "token_file", SETTINGS_PLACE, AT(token_file), "none",
	  .help = "file of a token that explanations and metrics need, read at each use" },
	{ "explain_limit", SETTINGS_COUNT, AT(explain_nodes), "20000", .max = 100000000,
	  .help = "nodes that are looked at in a second to explain why pods wait; 0: any number" },
	{ "web_listen", SETTINGS_TEXT, AT(web_listen), "off", .check = check_address,
	  .help = "where a page of all nodes, cards and pods is served by HTTP: off, 127.0.0.1:9397, [::1]:9397, unix:/path" },
	{ "web_token_file", SETTINGS_PLACE, AT(web_token_file), "none",
	  .help = "file with the bearer token that a reader of the page must name; none: nobody on this machine need" },
	{ "web_tls_certificate", SETTINGS_PLACE, AT(web_tls_certificate), "none",
	  .help = "PEM file of the certificate that the page is served by, read anew when it changes; none: without TLS" },
	{ "web_tls_key", SETTINGS_PLACE, AT(web_tls_key), "none",
	  .help = "PEM file of that certificate's key" },
	{ "web_node_url", SETTINGS_TEXT, AT(web_node_url), "none",
	  .help = "where a node's own page is, for links to it, as http://{node}:9401/; or none" },
	{ "connections", SETTINGS_COUNT, AT(connections), "256", .min = 4, .max = 4096,
	  .help = "clients at a time" },
	{ "body_limit", SETTINGS_SIZE, AT(body_max), "8MiB", .min = 64 * KIB, .max = 256 * MIB,
	  .help = "of a request's body; more is refused" },
	{ "idle_limit", SETTINGS_DURATION, AT(idle_ns), "120s", .min = S(1), .max = S(3600),
	  .help = "a connection without requests is closed after this long" },
	{ "kube_api", SETTINGS_TEXT, AT(kube_api), "off",
	  .help = "off, in-cluster or a kubeconfig's path; off: it is a webhook alone" },
	{ "lease", SETTINGS_TEXT, AT(lease), "kube-system/allot-scheduler", .check = check_lease,
	  .help = "the Lease by which one of several replicas leads; none: there is one" },
	{ "kube_scheduler_lease", SETTINGS_TEXT, AT(kube_scheduler_lease), "none",
	  .check = check_lease,
	  .help = "the Lease by which the kube-scheduler in our pod leads, where each replica has one: the replica beside the leader explains why pods wait" },
	{ "node_policy", SETTINGS_CHOICE, AT(node_policy), "binpack", .words = request_nodes_words,
	  .help = "binpack, spread or fragmentation: which nodes are taken first, where a pod does not say" },
	{ "gpu_policy", SETTINGS_TEXT, AT(gpu_policy), "spread", .check = check_policy,
	  .help = "the same of cards: binpack, spread, topology-aware, numa, mutex, fragmentation; by commas" },
	{ "bind_limit", SETTINGS_DURATION, AT(bind_limit_ns), "25s", .min = S(1), .max = S(600),
	  .help = "of one binding, with its wait for the node's lock" },
	{ "lock_expiry", SETTINGS_DURATION, AT(lock_expiry_ns), "300s", .min = S(10),
	  .max = S(3600), .help = "a node's lock of another pod is taken over after this long" },
	{ "hold_limit", SETTINGS_DURATION, AT(hold_ns), "300s", .min = S(10), .max = S(3600),
	  .help = "cards are kept for a pod that is not bound for this long at most" },
	{ "filter_events", SETTINGS_SWITCH, AT(has_filter_events), "on",
	  .help = "on or off: events of pods say which nodes were found fit for their cards, and why none was" },
	{ "place_by_use", SETTINGS_SWITCH, AT(places_by_use), "off",
	  .help = "on or off: pods that say so are placed by what others use of cards, not by what they were promised" },
	{ "filler_patience", SETTINGS_DURATION, AT(opportunistic_patience_ns), "60s", .min = 0,
	  .max = S(86400),
	  .help = "one of these is evicted when it has had too little for this long; 0: never" },
	{ "gangs", SETTINGS_SWITCH, AT(has_gangs), "on",
	  .help = "on or off: pods that say they are of one group are placed together or not at all" },
	{ "gang_wait", SETTINGS_DURATION, AT(gang_wait_ns), "12s", .min = S(1), .max = S(120),
	  .help = "a binding waits for those of the same gang for this long" },
	{ "gang_limit", SETTINGS_DURATION, AT(gang_hold_ns), "30s", .min = S(2), .max = S(600),
	  .help = "room is kept for a gang whose pods have not all come for this long at most" },
	{ "gang_patience", SETTINGS_DURATION, AT(gang_patience_ns), "300s", .min = 0, .max = S(86400),
	  .help = "after waiting for room for this long a gang is left nodes by pods that come alone; 0: never" },
	{ "scheduler_name", SETTINGS_TEXT, AT(scheduler_name), "allot-scheduler",
	  .help = "schedulerName of pods that ask for GPUs" },
	{ "force_scheduler", SETTINGS_SWITCH, AT(is_forced), "off",
	  .help = "on or off: pods that name another scheduler get that one, too" },
	{ "runtime_class", SETTINGS_TEXT, AT(runtime_class), "none",
	  .help = "runtimeClassName of pods that ask for GPUs and have none; or none" },
	{ "gpu_resource", SETTINGS_TEXT, AT(gpu), "nvidia.com/gpu", .check = check_resource,
	  .help = "how many GPUs" },
	{ "memory_resource", SETTINGS_TEXT, AT(memory), "nvidia.com/gpumem",
	  .check = check_resource, .help = "MiB of each" },
	{ "memory_percent_resource", SETTINGS_TEXT, AT(memory_pct), "nvidia.com/gpumem-percentage",
	  .check = check_resource, .help = "percent of each one's memory" },
	{ "cores_resource", SETTINGS_TEXT, AT(cores), "nvidia.com/gpucores",
	  .check = check_resource, .help = "percent of each one's time" },
	{ "priority_resource", SETTINGS_TEXT, AT(priority), "nvidia.com/priority",
	  .check = check_resource, .help = "a container's priority: 0 is high, 1 low" },
	{ "vcuda_core_resource", SETTINGS_TEXT, AT(vcuda_cores), "tencent.com/vcuda-core",
	  .check = check_resource, .help = "hundredths of a GPU's time, as gpu-manager has it" },
	{ "vcuda_memory_resource", SETTINGS_TEXT, AT(vcuda_memory), "tencent.com/vcuda-memory",
	  .check = check_resource, .help = "memory in units of 256 MiB, as gpu-manager has it" },
	{ "default_gpus", SETTINGS_COUNT, AT(default_gpus), "1", .min = 1, .max = 16,
	  .help = "GPUs of a container that names memory or cores alone" },
	{ "default_memory", SETTINGS_SIZE, AT(default_memory_bytes), "0", .max = 1024 * GIB,
	  .help = "memory of each GPU where nothing is said of it; 0: all of it" },
	{ "default_cores", SETTINGS_COUNT, AT(default_cores), "0", .max = 100,
	  .help = "percent of each GPU's time where nothing is said of it; 0: nothing is said" },
	{ "require_both", SETTINGS_SWITCH, AT(needs_both), "off",
	  .help = "on or off: pods must name memory and cores" },
	{ "require_estimate", SETTINGS_SWITCH, AT(needs_estimate), "off",
	  .help = "on or off: pods must say allot.dev/duration or allot.dev/concurrency" },
	{ "guard_environment", SETTINGS_CHOICE, AT(guard_environment), "allow", .words = guards,
	  .help = "variables that get round the limits: allow, warn, rewrite or deny" },
	{ "guard_mounts", SETTINGS_CHOICE, AT(guard_mounts), "allow", .words = guards,
	  .help = "the same of mounts of the host's device files, or over the library" },
	{ "guard_privileged", SETTINGS_CHOICE, AT(guard_privileged), "deny", .words = guards,
	  .help = "the same of privileged containers that ask for GPUs" },
	{ "guard_others", SETTINGS_SWITCH, AT(guards_others), "off",
	  .help = "on or off: those three hold for pods that ask for no GPU as well" },
	{ "images", SETTINGS_TEXT, AT(images), "*",
	  .help = "patterns, by commas: images of containers that may have GPUs" },
	{ "skip_namespaces", SETTINGS_TEXT, AT(namespaces), "kube-system",
	  .help = "patterns, by commas, of namespaces whose pods are let alone; or none" },
	{ "pod_opt_out", SETTINGS_SWITCH, AT(has_opt_out), "on",
	  .help = "on or off: a pod labelled allot.dev/webhook or hami.io/webhook: ignore is let alone" },
	{ "make_claims", SETTINGS_SWITCH, AT(makes_claims), "off",
	  .help = "on or off: what pods ask for in their limits becomes ResourceClaims, which the cluster's own scheduler places" },
	{ "device_class", SETTINGS_TEXT, AT(device_class), "gpu.allot.dev",
	  .check = check_device_class, .help = "the DeviceClass of these claims" },
};
#define ROW_COUNT (sizeof(rows) / sizeof(rows[0]))

static int check_tls(const struct config *c, struct error *err)
{
	bool has_certificate = strcmp(c->tls_certificate, "none") != 0;
	bool has_key = strcmp(c->tls_key, "none") != 0;
	if (has_certificate != has_key)
		return error_set(err, EINVAL, "%s: is none: %s needs it",
				 has_key ? "tls_certificate" : "tls_key",
				 has_key ? "tls_key" : "tls_certificate");
	if (strcmp(c->https_listen, "off") != 0 && !has_certificate)
		return error_set(
			err, EINVAL,
			"https_listen: '%.60s' needs tls_certificate and tls_key; 'allot-scheduler --issue DIR' makes both",
			c->https_listen);
	return 0;
}

/* What nobody could show, or what would let in more than was meant. */
static int check_clients(const struct config *c, struct error *err)
{
	bool has_ca = strcmp(c->client_ca, "none") != 0;
	if (has_ca && !strcmp(c->https_listen, "off"))
		return error_set(
			err, EINVAL,
			"client_ca: '%.60s': clients show certificates by TLS alone: needs https_listen",
			c->client_ca);
	if (!has_ca && strcmp(c->client_names, "*") != 0)
		return error_set(err, EINVAL, "client_names: '%.60s': needs client_ca",
				 c->client_names);
	if (c->is_local_trusted && c->is_http_open)
		return error_set(
			err, EINVAL,
			"client_local: on: other machines may ask at http_listen as well, by http_open = on");
	return 0;
}

/* Two resources of one name would be one amount for two things. */
static int check_resources(const struct config *c, struct error *err)
{
	for (size_t i = 0; i < ROW_COUNT; i++)
		for (size_t k = 0; k < i && rows[i].check == check_resource; k++)
			if (rows[k].check == check_resource &&
			    !strcmp((const char *)c + rows[i].offset,
				    (const char *)c + rows[k].offset))
				return error_set(err, EINVAL, "%s: '%.100s' is %s already",
						 rows[i].name, (const char *)c + rows[i].offset,
						 rows[k].name);
	return 0;
}

static int check_claims(const struct config *c, struct error *err)
{
	if (!c->makes_claims || strcmp(c->kube_api, "off") != 0)
		return 0;
	return error_set(err, EINVAL,
			 "make_claims: on: needs kube_api: the claims' templates are made there");
}

/* Room has to be kept for those that wait for each other. */
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
		return error_set(err, EINVAL,
				 "https_listen and http_listen are off: nobody could ask");
	return 0;
}

const struct settings_table config_table = {
	.row = rows,
	.count = ROW_COUNT,
	.check = (const settings_check[]){ check, NULL },
	.alias = config_aliases,
};
