#include "cli/explain/api.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "kube/client/kube_client.h"

static char *first_of(const char *list)
{
	for (const char *from = list; *from;) {
		size_t length = strcspn(from, ":");
		char *path = strndup(from, length);
		if (path && *path && access(path, F_OK) == 0)
			return path;
		free(path);
		from += length + (from[length] == ':');
	}
	return NULL;
}

static char *find_config(void)
{
	const char *list = getenv("KUBECONFIG"), *home = getenv("HOME");
	char *path = NULL;
	if (list && *list)
		return first_of(list);
	if (!home || asprintf(&path, "%s/.kube/config", home) < 0)
		return NULL;
	if (access(path, F_OK) < 0) {
		free(path);
		return NULL;
	}
	return path;
}

int api_find(const char *config, struct kube_access *ret, struct error *err)
{
	cleanup_free char *found = config ? NULL : find_config();
	if (config || found)
		return access_read_config(config ? config : found, ret, err);
	int r = access_of_this_pod(ret, err);
	if (r != -ENOENT)
		return r;
	return error_set(
		err, ENOENT,
		"no Kubernetes: there is no kubeconfig in KUBECONFIG or ~/.kube/config, and this "
		"program does not run in a pod; name a kubeconfig by --kubeconfig, or allot-scheduler by --server");
}

struct question {
	bool is_done;
	int status;
	json_t *object;
	struct error err;
};

static void answered(void *data, const struct kube_answer *answer)
{
	struct question *q = data;
	q->is_done = true;
	q->status = answer->status;
	q->object = json_incref(answer->object);
	q->err = answer->err;
}

int api_get(const struct kube_access *access, const char *path, const char *token, int *ret_status,
	    json_t **ret, struct error *err)
{
	struct kube_client *client;
	struct question q = { 0 };
	const struct kube_request request = { .method = "GET", .path = path, .proxied_token = token };
	*ret_status = 0;
	*ret = NULL;
	int r = kube_client_new(access, &client, err);
	if (r < 0)
		return r;
	if (!kube_call_start(client, &request, NULL, answered, &q)) {
		kube_client_free(client);
		return error_set_errno(err, ENOMEM, "%s", access->server);
	}
	/* The call has a time limit, so this loop ends. */
	while (!q.is_done) {
		struct pollfd one = { .fd = kube_client_fd(client), .events = POLLIN };
		if (poll(&one, 1, -1) > 0)
			kube_client_process(client);
	}
	kube_client_free(client);
	*ret_status = q.status;
	*ret = q.object;
	return q.err.code ? error_set(err, q.err.code, "%s", q.err.text) : 0;
}
