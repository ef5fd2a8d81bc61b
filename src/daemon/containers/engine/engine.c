#include "daemon/containers/engine/engine.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "daemon/containers/engine/engine_http.h"
#include "net/grpc_client.h"

/* longest reply that is read; a container's description takes about 10 KiB */
#define REPLY_MOST_BYTES (1 << 20)
#define CRI_METHOD "/runtime.v1.RuntimeService/ContainerStatus"
#define CONTAINERD_METHOD "/containerd.services.containers.v1.Containers/Get"
#define NAMESPACE_MAX 77 /* containerd allows 76 characters */
#define DEFAULT_PATHS 2

struct question {
	const char *path; /* path of the engine's socket */
	const struct container *container;
	int stop_fd;
	uint64_t end_ns;
};

typedef int (*asker)(const struct question *q, struct engine_name *ret);

static int ask_docker(const struct question *q, struct engine_name *ret);
static int ask_cri(const struct question *q, struct engine_name *ret);
static int ask_containerd(const struct question *q, struct engine_name *ret);

/* `paths` has the default paths of the engine's socket. */
struct engine_kind {
	const char *name;
	asker ask;
	const char *paths[DEFAULT_PATHS];
};

static const struct engine_kind kinds[] = {
	{ "docker", ask_docker, { "/run/docker.sock" } },
	{ "podman", ask_docker, { "/run/podman/podman.sock" } },
	{ "containerd",
	  ask_containerd,
	  { "/run/containerd/containerd.sock", "/run/k3s/containerd/containerd.sock" } },
	{ "cri-o", ask_cri, { "/run/crio/crio.sock" } },
};
#define KIND_COUNT (sizeof(kinds) / sizeof(kinds[0]))

static void add_all(struct engines *engines)
{
	for (size_t i = 0; i < KIND_COUNT; i++)
		for (size_t k = 0; k < DEFAULT_PATHS && kinds[i].paths[k]; k++) {
			struct engine *e = &engines->item[engines->count++];
			e->kind = &kinds[i];
			strcpy(e->path, kinds[i].paths[k]);
		}
}

static int parse_one(const char *text, size_t size, struct engine *ret, struct error *err)
{
	const char *colon = memchr(text, ':', size);
	size_t name = colon ? (size_t)(colon - text) : 0;
	for (size_t i = 0; colon && i < KIND_COUNT; i++) {
		size_t path = size - name - 1;
		if (strlen(kinds[i].name) != name || memcmp(kinds[i].name, text, name) != 0)
			continue;
		if (colon[1] != '/' || path >= ENGINE_PATH_MAX)
			return error_set(err, EINVAL,
					 "'%.*s': must be an absolute path of at most %d bytes",
					 (int)path, colon + 1, ENGINE_PATH_MAX - 1);
		ret->kind = &kinds[i];
		memcpy(ret->path, colon + 1, path);
		ret->path[path] = '\0';
		return 0;
	}
	return error_set(err, EINVAL,
			 "'%.*s': must be auto, none, or a comma-separated list such as "
			 "docker:/run/docker.sock (kinds: docker, podman, containerd, cri-o)",
			 (int)size, text);
}

int engines_parse(const char *text, struct engines *ret, struct error *err)
{
	struct engines engines = { 0 };
	if (!strcmp(text, "auto"))
		add_all(&engines);
	for (const char *at = text; strcmp(text, "auto") != 0 && strcmp(text, "none") != 0;) {
		size_t n = strcspn(at, ",");
		if (engines.count == ENGINES_MAX)
			return error_set(err, EINVAL, "too many sockets: list at most %d",
					 ENGINES_MAX);
		int r = parse_one(at, n, &engines.item[engines.count++], err);
		if (r < 0)
			return r;
		if (!at[n])
			break;
		at += n + 1;
	}
	*ret = engines;
	return 0;
}

const char *engine_kind_name(const struct engine *engine)
{
	return engine->kind->name;
}

bool engine_may_own(const struct engine *engine, const struct container *container)
{
	return !strcmp(container->engine, engine->kind->name) ||
	       !strcmp(container->engine, "container");
}

static int ask_docker(const struct question *q, struct engine_name *ret)
{
	char path[CONTAINER_ID_MAX + 32];
	cleanup(net_link_close) struct net_link link = { .fd = -1 };
	cleanup_free char *body = NULL;
	size_t size = 0;
	snprintf(path, sizeof(path), "/containers/%s/json", q->container->id);
	int r = net_link_open(&link, q->path, q->stop_fd, q->end_ns);
	if (r >= 0)
		r = engine_http_get(&link, path, REPLY_MOST_BYTES, &body, &size);
	return r < 0 ? r : engine_reply_docker(body, size, q->container->id, ret);
}

/* Makes a gRPC call. `namespace` goes into containerd's header; NULL: none. The caller frees *ret. */
static int call(const struct question *q, const char *method, const char *namespace,
		unsigned char *message, size_t size, unsigned char **ret, size_t *ret_size)
{
	cleanup(net_link_close) struct net_link link = { .fd = -1 };
	struct grpc_request request = { .method = method,
					.header = namespace ? "containerd-namespace" : NULL,
					.header_value = namespace,
					.message = message,
					.size = size,
					.most_bytes = REPLY_MOST_BYTES };
	struct grpc_reply reply;
	int r = message ? net_link_open(&link, q->path, q->stop_fd, q->end_ns) : -ENOMEM;
	if (r >= 0)
		r = grpc_call_unary(&link, &request, &reply);
	if (r < 0)
		return r;
	switch (reply.status) {
	case GRPC_OK: break;
	case GRPC_NOT_FOUND: return -ENOENT;
	case GRPC_UNIMPLEMENTED: return -EOPNOTSUPP;
	default: return -EPROTO;
	}
	*ret = reply.message;
	*ret_size = reply.size;
	return 0;
}

static int ask_cri(const struct question *q, struct engine_name *ret)
{
	size_t size = 0, reply_size = 0;
	cleanup_free unsigned char *request = engine_request_cri(q->container->id, &size);
	cleanup_free unsigned char *reply = NULL;
	int r = call(q, CRI_METHOD, NULL, request, size, &reply, &reply_size);
	return r < 0 ? r : engine_reply_cri(reply, reply_size, q->container->id, ret);
}

static int ask_in_namespace(const struct question *q, const char *namespace, struct engine_name *ret)
{
	size_t size = 0, reply_size = 0;
	cleanup_free unsigned char *request = engine_request_containerd(q->container->id, &size);
	cleanup_free unsigned char *reply = NULL;
	int r = call(q, CONTAINERD_METHOD, namespace, request, size, &reply, &reply_size);
	return r < 0 ? r : engine_reply_containerd(reply, reply_size, q->container->id, ret);
}

/* Finds containerd's namespace in the cgroup path "/<namespace>/<id>", as ctr and nerdctl make it. "" for other paths. */
static void find_namespace(const struct container *c, char ret[NAMESPACE_MAX])
{
	const char *path = c->v2_path[0] ? c->v2_path : c->v1_path;
	size_t n = *path ? strcspn(path + 1, "/") : 0;
	ret[0] = '\0';
	if (n == 0 || n >= NAMESPACE_MAX || path[n + 1] != '/' || strchr(path + n + 2, '/'))
		return;
	for (size_t i = 1; i <= n; i++)
		if (!isalnum((unsigned char)path[i]) && !strchr("._-", path[i]))
			return;
	memcpy(ret, path + 1, n);
	ret[n] = '\0';
}

/*
 * If CRI does not know the container, asks containerd: first in the namespace that the cgroup path names, then in the usual
 * ones.
 */
static int ask_containerd(const struct question *q, struct engine_name *ret)
{
	char own[NAMESPACE_MAX];
	find_namespace(q->container, own);
	const char *const namespaces[] = { own, "default", "k8s.io" };
	int r = ask_cri(q, ret);
	for (size_t i = 0; i < sizeof(namespaces) / sizeof(namespaces[0]); i++)
		if ((r == -ENOENT || r == -EOPNOTSUPP) && *namespaces[i])
			r = ask_in_namespace(q, namespaces[i], ret);
	return r;
}

int engine_query(const struct engine *engine, const struct container *container, int stop_fd,
		 uint64_t end_ns, struct engine_name *ret)
{
	struct question q = {
		.path = engine->path, .container = container, .stop_fd = stop_fd, .end_ns = end_ns
	};
	return engine->kind->ask(&q, ret);
}
