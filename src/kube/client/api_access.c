#include "kube/client/api_access.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "kube/util/base64.h"
#include "kube/util/sanitize.h"
#include "kube/util/yaml.h"

#define FILE_MAX (1 << 20)

void access_free(struct kube_access *access)
{
	free(access->server);
	free(access->ca_pem);
	free(access->certificate_pem);
	if (access->key_pem)
		explicit_bzero(access->key_pem, strlen(access->key_pem));
	free(access->key_pem);
	if (access->token)
		explicit_bzero(access->token, strlen(access->token));
	free(access->token);
	free(access->token_file);
	free(access->in_namespace);
	*access = (struct kube_access){ 0 };
}

int access_read_file(const char *path, char **ret, struct error *err)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	cleanup_free char *text = malloc(FILE_MAX + 1);
	size_t size = 0;
	ssize_t n = 1;
	if (fd < 0)
		return error_set_errno(err, errno, "%s", path);
	if (!text)
		return error_set_errno(err, ENOMEM, "%s", path);
	while (n > 0 && size < FILE_MAX) {
		n = read(fd, text + size, FILE_MAX - size);
		size += n > 0 ? (size_t)n : 0;
	}
	if (n < 0)
		return error_set_errno(err, errno, "%s", path);
	bool is_large = size >= FILE_MAX;
	while (size && strchr(" \t\r\n", text[size - 1]))
		size--;
	text[size] = '\0';
	if (!size || is_large || strlen(text) != size)
		return error_set(err, EINVAL,
				 "%s: must be a text file that is not empty and has less than 1 MiB",
				 path);
	char *fitting = strdup(text);
	explicit_bzero(text, size);
	if (!fitting)
		return error_set_errno(err, ENOMEM, "%s", path);
	*ret = fitting;
	return 0;
}

struct reader {
	const char *path; /* of the kubeconfig; other file names are relative to its directory */
	struct error *err;
};

static int find_named(const struct reader *r, const json_t *root, const char *list,
		      const char *part, const char *name, const json_t **ret)
{
	const json_t *all = json_object_get(root, list);
	for (size_t i = 0; i < json_array_size(all); i++) {
		const json_t *entry = json_array_get(all, i);
		const char *of = json_string_value(json_object_get(entry, "name"));
		const json_t *value = json_object_get(entry, part);
		if (!of || strcmp(of, name) != 0)
			continue;
		if (!json_is_object(value))
			return error_set(r->err, EINVAL, "%s '%.60s': %s: missing", list, name,
					 part);
		*ret = value;
		return 0;
	}
	return error_set(r->err, EINVAL, "%s: no entry is named '%.60s'", list, name);
}

static int read_text(const struct reader *r, const json_t *object, const char *key, const char **ret)
{
	const json_t *value = json_object_get(object, key);
	*ret = NULL;
	if (!value || json_is_null(value))
		return 0;
	if (!json_is_string(value))
		return error_set(r->err, EINVAL, "%s: must be a string", key);
	*ret = *json_string_value(value) ? json_string_value(value) : NULL;
	return 0;
}

static int keep(const struct reader *r, const char *text, char **ret)
{
	*ret = text ? strdup(text) : NULL;
	return text && !*ret ? error_set_errno(r->err, ENOMEM, "kubeconfig") : 0;
}

static int resolve(const struct reader *r, const char *name, char **ret)
{
	const char *slash = strrchr(r->path, '/');
	int length = *name == '/' || !slash ? 0 : (int)(slash + 1 - r->path);
	if (asprintf(ret, "%.*s%s", length, r->path, name) < 0) {
		*ret = NULL;
		return error_set_errno(r->err, ENOMEM, "kubeconfig");
	}
	return 0;
}

/* Reads `<key>-data` (base64), or the file that `<key>` names. If neither is given, *ret stays NULL. */
static int read_data(const struct reader *r, const json_t *object, const char *key, char **ret)
{
	char data_key[64];
	const char *data, *name;
	snprintf(data_key, sizeof(data_key), "%s-data", key);
	int status = read_text(r, object, data_key, &data);
	if (status >= 0)
		status = read_text(r, object, key, &name);
	if (status < 0)
		return status;
	if (data) {
		status = base64_decode(data, ret);
		return status < 0 ? error_set(r->err, -status, "%s: must be a string in base64",
					      data_key)
				  : 0;
	}
	cleanup_free char *path = NULL;
	if (name)
		status = resolve(r, name, &path);
	if (path)
		status = access_read_file(path, ret, r->err);
	return status < 0 ? error_add(r->err, status, "%s", key) : 0;
}

static int read_server(const struct reader *r, const json_t *cluster, struct kube_access *a)
{
	const char *server, *other;
	int status = read_text(r, cluster, "server", &server);
	if (status >= 0 &&
	    (!server || (strncmp(server, "https://", 8) && strncmp(server, "http://", 7))))
		status = error_set(r->err, EINVAL,
				   "server: '%.80s': must be https://HOST:PORT or http://HOST:PORT",
				   server ? server : "");
	static const char *const refused[] = { "proxy-url", "tls-server-name" };
	for (size_t i = 0; status >= 0 && i < 2; i++) {
		status = read_text(r, cluster, refused[i], &other);
		if (status >= 0 && other)
			status = error_set(r->err, EINVAL,
					   "%s: is not supported: use a kubeconfig without it",
					   refused[i]);
	}
	if (status >= 0)
		status = keep(r, server, &a->server);
	for (size_t n = status >= 0 ? strlen(a->server) : 0; n && a->server[n - 1] == '/';)
		a->server[--n] = '\0';
	return status;
}

static int read_cluster(const struct reader *r, const json_t *cluster, struct kube_access *a)
{
	int status = read_server(r, cluster, a);
	if (status >= 0)
		status = read_data(r, cluster, "certificate-authority", &a->ca_pem);
	const json_t *skip = json_object_get(cluster, "insecure-skip-tls-verify");
	if (status >= 0 && skip && !json_is_boolean(skip) && !json_is_null(skip))
		status = error_set(r->err, EINVAL,
				   "insecure-skip-tls-verify: must be true or false");
	a->is_unverified = json_is_true(skip);
	return status;
}

static int read_user(const struct reader *r, const json_t *user, struct kube_access *a)
{
	static const char *const refused[] = { "exec", "auth-provider", "username", "as" };
	const char *token, *file;
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		if (json_object_get(user, refused[i]) &&
		    !json_is_null(json_object_get(user, refused[i])))
			return error_set(r->err, EINVAL,
					 "%s: is not supported; name a token or a client "
					 "certificate",
					 refused[i]);
	int status = read_data(r, user, "client-certificate", &a->certificate_pem);
	if (status >= 0)
		status = read_data(r, user, "client-key", &a->key_pem);
	if (status >= 0 && !a->certificate_pem != !a->key_pem)
		status = error_set(r->err, EINVAL, "%s is missing, but %s is given: give both",
				   a->key_pem ? "client-certificate" : "client-key",
				   a->key_pem ? "client-key" : "client-certificate");
	if (status >= 0)
		status = read_text(r, user, "token", &token);
	if (status >= 0)
		status = read_text(r, user, "tokenFile", &file);
	if (status >= 0 && file)
		status = resolve(r, file, &a->token_file);
	else if (status >= 0)
		status = keep(r, token, &a->token);
	if (status >= 0 && !a->certificate_pem && !a->token && !a->token_file)
		status = error_set(r->err, EINVAL,
				   "must have a token, a tokenFile or a client-certificate");
	return status;
}

static int read_context(const struct reader *r, const json_t *root, struct kube_access *a)
{
	const json_t *context, *part;
	const char *name, *cluster, *user, *in_namespace = NULL;
	int status = read_text(r, root, "current-context", &name);
	if (status >= 0 && !name)
		status = error_set(r->err, EINVAL, "current-context: missing");
	if (status >= 0)
		status = find_named(r, root, "contexts", "context", name, &context);
	if (status >= 0)
		status = read_text(r, context, "cluster", &cluster);
	if (status >= 0)
		status = read_text(r, context, "user", &user);
	if (status >= 0)
		status = read_text(r, context, "namespace", &in_namespace);
	if (status >= 0 && (!cluster || !user))
		status = error_set(r->err, EINVAL, "contexts '%.60s': %s: missing", name,
				   cluster ? "user" : "cluster");
	if (status < 0)
		return status;
	status = find_named(r, root, "clusters", "cluster", cluster, &part);
	if (status < 0)
		return status;
	status = read_cluster(r, part, a);
	if (status < 0)
		return error_add(r->err, status, "clusters '%.60s'", cluster);
	status = find_named(r, root, "users", "user", user, &part);
	if (status < 0)
		return status;
	status = read_user(r, part, a);
	if (status < 0)
		return error_add(r->err, status, "users '%.60s'", user);
	return keep(r, in_namespace, &a->in_namespace);
}

int access_read_config(const char *path, struct kube_access *ret, struct error *err)
{
	const struct reader r = { path, err };
	struct kube_access access = { 0 };
	cleanup_free char *text = NULL;
	cleanup_json json_t *root = NULL;
	int status = access_read_file(path, &text, err);
	if (status < 0)
		return status;
	status = yaml_parse(text, &root, err);
	if (status >= 0)
		status = read_context(&r, root, &access);
	if (status < 0) {
		access_free(&access);
		return error_sanitize(err, error_add(err, status, "%s", path));
	}
	*ret = access;
	return 0;
}

int access_of_pod(const char *host, const char *port, const char *dir, struct kube_access *ret,
		  struct error *err)
{
	struct kube_access a = { 0 };
	cleanup_free char *ca = NULL, *token = NULL, *place = NULL;
	if (!host || !*host || !port || !*port)
		return error_set(err, ENOENT,
				 "this program does not run in a pod: KUBERNETES_SERVICE_HOST or "
				 "KUBERNETES_SERVICE_PORT is not set; outside a pod, write the path of "
				 "a kubeconfig");
	bool is_v6 = strchr(host, ':') != NULL;
	if (asprintf(&a.server, "https://%s%s%s:%s", is_v6 ? "[" : "", host, is_v6 ? "]" : "",
		     port) < 0)
		a.server = NULL;
	if (asprintf(&ca, "%s/ca.crt", dir) < 0)
		ca = NULL;
	if (asprintf(&a.token_file, "%s/token", dir) < 0)
		a.token_file = NULL;
	if (asprintf(&place, "%s/namespace", dir) < 0)
		place = NULL;
	int r = a.server && ca && a.token_file && place
			? 0
			: error_set_errno(err, ENOMEM, "service account");
	if (r >= 0)
		r = access_read_file(ca, &a.ca_pem, err);
	if (r >= 0)
		r = access_read_file(a.token_file, &token, err);
	/* Ignore a missing namespace file: not every service account has one. */
	if (r >= 0)
		access_read_file(place, &a.in_namespace, NULL);
	if (r < 0) {
		access_free(&a);
		return error_add(err, r, "service account");
	}
	*ret = a;
	return 0;
}

int access_of_this_pod(struct kube_access *ret, struct error *err)
{
	return access_of_pod(getenv("KUBERNETES_SERVICE_HOST"), getenv("KUBERNETES_SERVICE_PORT"),
			     "/var/run/secrets/kubernetes.io/serviceaccount", ret, err);
}

int access_by_setting(const char *kube_api, struct kube_access *ret, struct error *err)
{
	int r = strcmp(kube_api, "in-cluster") ? access_read_config(kube_api, ret, err)
					       : access_of_this_pod(ret, err);
	return r < 0 ? error_add(err, r, "kube_api") : 0;
}
