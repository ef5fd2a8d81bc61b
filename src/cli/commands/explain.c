#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/explain/api.h"
#include "cli/explain/claims_get.h"
#include "cli/explain/explain_pod.h"
#include "cli/explain/explain_text.h"

#define SERVICE "allot-system/allot-scheduler"
#define NAME_MAX_LENGTH 253
#define PATH_SIZE 1536

struct explain_options {
	const char *in_namespace, *node, *service, *kubeconfig, *server, *ca, *token_file, *cert,
		*key;
	bool json;
};

static const struct option_row rows[] = {
	OPTION("--namespace", OPTION_VALUE_REQUIRED, "NAME", option_text, struct explain_options,
	       in_namespace,
	       .help = "the pod's namespace (default: the kubeconfig's, else\ndefault)"),
	OPTION("-n", OPTION_VALUE_REQUIRED, "NAME", option_text, struct explain_options,
	       in_namespace, .help = "the same as --namespace"),
	OPTION("--node", OPTION_VALUE_REQUIRED, "NAME", option_text, struct explain_options, node,
	       .help = "explain this node only: each GPU, the pods on it, and\nwhy it does not fit"),
	OPTION("--json", OPTION_VALUE_NONE, NULL, option_flag, struct explain_options, json,
	       .help = "print JSON"),
	OPTION("--service", OPTION_VALUE_REQUIRED, "NAMESPACE/NAME", option_text,
	       struct explain_options, service,
	       .help = "allot-scheduler's Service (default:\n" SERVICE ")"),
	OPTION("--kubeconfig", OPTION_VALUE_REQUIRED, "FILE", option_text, struct explain_options,
	       kubeconfig,
	       .help = "how to reach the cluster (default: KUBECONFIG, else\n~/.kube/config, else this pod's account)"),
	OPTION("--server", OPTION_VALUE_REQUIRED, "URL", option_text, struct explain_options,
	       server, .help = "ask allot-scheduler at this URL, without the API server"),
	OPTION("--ca", OPTION_VALUE_REQUIRED, "FILE", option_text, struct explain_options, ca,
	       .help = "with --server: file with the certificate authority to\ntrust (default: the system's)"),
	OPTION("--token-file", OPTION_VALUE_REQUIRED, "FILE", option_text, struct explain_options,
	       token_file, .help = "file with the token, if allot-scheduler's token_file\nis set"),
	OPTION("--cert", OPTION_VALUE_REQUIRED, "FILE", option_text, struct explain_options, cert,
	       .help = "with --server: client certificate, if allot-scheduler's\nclient_verbs contains explain"),
	OPTION("--key", OPTION_VALUE_REQUIRED, "FILE", option_text, struct explain_options, key,
	       .help = "with --cert: its private key"),
	OPTION_END,
};

/* A name becomes part of a URL's path, so it must be a valid Kubernetes name. */
static int check_name(const char *what, const char *name, struct error *err)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-.";
	size_t length = strlen(name);
	if (length && length <= NAME_MAX_LENGTH && strspn(name, allowed) == length && name[0] != '.')
		return 0;
	char shown[64];
	snprintf(shown, sizeof(shown), "%.60s", name);
	text_clean(shown);
	return error_set(err, EINVAL, "%s: '%s': must be a name of a-z, 0-9, '-' and '.'", what,
			 shown);
}

static int check_options(const void *options, const char *pod, struct error *err)
{
	const struct explain_options *o = options;
	int r = check_name("POD", pod, err);
	if (r >= 0 && o->in_namespace)
		r = check_name("--namespace", o->in_namespace, err);
	if (r >= 0 && o->node)
		r = check_name("--node", o->node, err);
	if (r >= 0 && o->server && (o->kubeconfig || o->service))
		return error_set(err, EINVAL,
				 "--server: can't be used with %s, since --server asks "
				 "allot-scheduler directly",
				 o->kubeconfig ? "--kubeconfig" : "--service");
	if (r >= 0 && o->ca && !o->server)
		return error_set(
			err, EINVAL,
			"--ca: only with --server; otherwise the kubeconfig names the certificate authority");
	if (r >= 0 && o->cert && !o->server)
		return error_set(
			err, EINVAL,
			"--cert: only with --server; through the API server use --token-file");
	if (r >= 0 && !o->cert != !o->key)
		return error_set(err, EINVAL, "%s: must be given together with %s",
				 o->cert ? "--cert" : "--key", o->cert ? "--key" : "--cert");
	if (r >= 0 && o->server && strncmp(o->server, "http://", 7) != 0 &&
	    strncmp(o->server, "https://", 8) != 0)
		return error_set(err, EINVAL, "--server: '%.80s': must be https://HOST:PORT",
				 o->server);
	return r;
}

static void explain_path(const struct explain_options *o, const char *in, const char *pod,
			 char path[PATH_SIZE])
{
	snprintf(path, PATH_SIZE, "/explain/%s/%s%s%s", in, pod, o->node ? "/" : "",
		 o->node ? o->node : "");
}

/* A Service sends each call to some replica of allot-scheduler. One of this many calls very likely reaches the leader. */
#define ASKS_MAX 16

static bool is_of_leader(const json_t *answer)
{
	return !json_is_false(json_object_get(answer, "leads"));
}

/* Repeats the call until the leader answers, which alone knows all reservations; *answer may stay another replica's. */
static void ask_for_leader(const struct kube_access *access, const char *path, const char *token,
			   json_t **answer)
{
	for (unsigned asks = 1; asks < ASKS_MAX && !is_of_leader(*answer); asks++) {
		cleanup_json json_t *next = NULL;
		int status;
		if (api_get(access, path, token, &status, &next, NULL) < 0 ||
		    !json_object_get(next, "state"))
			break;
		json_decref(*answer);
		*answer = json_incref(next);
	}
	if (!is_of_leader(*answer))
		fprintf(stderr,
			"allot: explain: the answer is from a replica of allot-scheduler that is not the leader: GPUs that the leader has reserved may be shown as free\n");
}

/* Without --token-file, *ret stays unchanged. */
static int read_token(const struct explain_options *o, char **ret, struct error *err)
{
	int r = o->token_file ? access_read_file(o->token_file, ret, err) : 0;
	return r < 0 ? error_add(err, r, "--token-file") : 0;
}

/* After a failure, *ret_own is true if the error came from allot-scheduler, not from a server in between. */
static int ask_scheduler(const struct kube_access *access, const char *token, const char *path,
			 json_t **ret, bool *ret_own, struct error *err)
{
	cleanup_json json_t *answer = NULL;
	int status = 0;
	int r = api_get(access, path, token, &status, &answer, err);
	const char *error = json_string_value(json_object_get(answer, "Error"));
	*ret_own = error != NULL;
	if (error)
		return error_set(err, status == 404 ? ENOENT : EBUSY, "allot-scheduler: %s", error);
	if (r >= 0 && !json_object_get(answer, "state"))
		return error_set(
			err, EPROTO,
			"%s: the server there is not allot-scheduler, or is too old to explain; "
			"check --service or --server",
			path);
	if (r < 0)
		return r;
	ask_for_leader(access, path, token, &answer);
	*ret = json_incref(answer);
	return 0;
}

static int ask_server(const struct explain_options *o, const char *pod, json_t **ret,
		      struct error *err)
{
	struct kube_access access = { .server = strdup(o->server) };
	cleanup_free char *token = NULL;
	char path[PATH_SIZE];
	bool is_own;
	int r = access.server ? 0 : error_set_errno(err, ENOMEM, "--server");
	for (size_t n = r >= 0 ? strlen(access.server) : 0; n && access.server[n - 1] == '/';)
		access.server[--n] = '\0';
	explain_path(o, o->in_namespace ? o->in_namespace : "default", pod, path);
	if (r >= 0 && o->ca)
		r = access_read_file(o->ca, &access.ca_pem, err);
	if (r >= 0 && o->cert)
		r = access_read_file(o->cert, &access.certificate_pem, err);
	if (r >= 0 && o->key)
		r = access_read_file(o->key, &access.key_pem, err);
	if (r >= 0)
		r = read_token(o, &token, err);
	if (r >= 0)
		r = ask_scheduler(&access, token, path, ret, &is_own, err);
	access_free(&access);
	return r;
}

static int proxy_path(const struct explain_options *o, const char *in, const char *pod,
		      char path[PATH_SIZE], struct error *err)
{
	const char *service = o->service ? o->service : SERVICE;
	const char *slash = strchr(service, '/');
	char where[NAME_MAX_LENGTH + 1], rest[PATH_SIZE];
	snprintf(where, sizeof(where), "%.*s", slash ? (int)(slash - service) : 0, service);
	int r = slash ? check_name("--service", where, err)
		      : error_set(err, EINVAL, "--service: '%.80s': must be NAMESPACE/NAME",
				  service);
	if (r >= 0)
		r = check_name("--service", slash + 1, err);
	if (r < 0)
		return r;
	explain_path(o, in, pod, rest);
	int size = snprintf(path, PATH_SIZE, "/api/v1/namespaces/%s/services/https:%s:https/proxy%s",
			    where, slash + 1, rest);
	return size < PATH_SIZE
		       ? 0
		       : error_set(
				 err, EINVAL,
				 "the names of the pod, the namespace and the Service are too long together");
}

static int fall_back(const struct kube_access *access, const char *in, const char *pod,
		     const json_t *object, const struct error *why, json_t **ret, struct error *err)
{
	cleanup_json json_t *events = explain_events_fetch(access, in, pod);
	fprintf(stderr, "allot: explain: %s; so only the pod's annotations and events are shown\n",
		why->text);
	*ret = explain_of_pod(object, events, why->text);
	return *ret ? 0 : error_set_errno(err, ENOMEM, "pod %s/%s", in, pod);
}

static int ask_as(const struct explain_options *o, const struct kube_access *access,
		  const char *pod, json_t **ret, struct error *err)
{
	const char *own = access->in_namespace ? access->in_namespace : "default";
	const char *in = o->in_namespace ? o->in_namespace : own;
	cleanup_json json_t *object = NULL;
	cleanup_free char *token = NULL;
	struct error why = { 0 };
	char path[PATH_SIZE];
	bool is_own;
	int status;
	snprintf(path, sizeof(path), "/api/v1/namespaces/%s/pods/%s", in, pod);
	int r = api_get(access, path, NULL, &status, &object, err);
	if (status == 404)
		return error_set(err, ENOENT, "pod %s/%s: no such pod; kubectl get pods lists them",
				 in, pod);
	if (r < 0)
		return r;
	if (explain_has_claims(object)) {
		struct explain_claims known;
		explain_claims_fetch(access, in, object, &known);
		*ret = explain_of_claims(object, &known);
		explain_claims_free(&known);
		return *ret ? 0 : error_set_errno(err, ENOMEM, "pod %s/%s", in, pod);
	}
	r = proxy_path(o, in, pod, path, err);
	if (r >= 0)
		r = read_token(o, &token, err);
	if (r < 0)
		return r;
	r = ask_scheduler(access, token, path, ret, &is_own, &why);
	if (r >= 0) {
		explain_add_pod(*ret, object);
		return 0;
	}
	/* The user named a node that allot-scheduler does not know, so the Pod object cannot help either. */
	if (is_own && o->node && strstr(why.text, "node "))
		return error_set(err, why.code, "%s", why.text);
	return fall_back(access, in, pod, object, &why, ret, err);
}

static int ask_cluster(const struct explain_options *o, const char *pod, json_t **ret,
		       struct error *err)
{
	struct kube_access access = { 0 };
	int r = api_find(o->kubeconfig, &access, err);
	if (r >= 0)
		r = ask_as(o, &access, pod, ret, err);
	access_free(&access);
	return r;
}

static int explain(const struct command *self, void *options, char *pod, struct error *err)
{
	const struct explain_options *o = options;
	cleanup_json json_t *explanation = NULL;
	int r = o->server ? ask_server(o, pod, &explanation, err)
			  : ask_cluster(o, pod, &explanation, err);
	if (r < 0)
		return r;
	if (o->json)
		return command_print_json(explanation, JSON_INDENT(2), err);
	explain_text_write(explanation, stdout);
	return 0;
}

const struct command command_explain = {
	.name = "explain",
	.usage = "POD [OPTION...]",
	.summary = "say why a Kubernetes pod waits for GPUs, or which it has",
	.about = "Asks allot-scheduler, through the Kubernetes API server, why a pod waits. The\n"
		 "answer has the pod's requests, the nodes that cannot serve it and why, the\n"
		 "nodes that are closest to fitting, and what would help. For a placed pod it\n"
		 "shows its GPUs. It changes nothing.\n\n"
		 "For a pod with ResourceClaims only the API server is asked, for its claims, the\n"
		 "nodes' ResourceSlices and the claims of other pods.\n\n"
		 "If allot-scheduler cannot be reached, the pod's annotations and events are\n"
		 "shown instead.",
	.rows = rows,
	.operand = OPERAND_OTHER,
	.options_size = sizeof(struct explain_options),
	.wanted = "write one pod's name; kubectl get pods lists them",
	.check = check_options,
	.act = explain,
};
