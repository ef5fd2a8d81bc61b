#include "scheduler/cluster/kube_lease.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "kube/client/watch.h"
#include "scheduler/cluster/leader_lease.h"

#define PATH_MAX_BYTES 640
#define HOST_MAX 65

struct kube_lease {
	struct kube_watch *watch;
	char host[HOST_MAX];
	bool is_ours, fails;
};

static void list_begun(void *data)
{
	struct kube_lease *l = data;
	l->is_ours = false;
}

/* client-go names a holder by its hostname, '_' and a UUID. */
static void changed(void *data, json_t *object)
{
	struct kube_lease *l = data;
	struct lease lease;
	size_t length = strlen(l->host);
	l->is_ours = lease_read(object, &lease, NULL) >= 0 &&
		     !strncmp(lease.holder, l->host, length) && lease.holder[length] == '_';
}

static void deleted(void *data, json_t *object)
{
	list_begun(data);
}

static void synced(void *data)
{
}

static void trouble(void *data, const struct error *err)
{
	struct kube_lease *l = data;
	if (err && !l->fails)
		log_warning("kube_scheduler_lease: %s; trying again", err->text);
	l->fails = err != NULL;
}

int kube_lease_start(struct kube_client *client, const char *in_namespace, const char *name,
		     struct kube_lease **ret)
{
	static const struct watch_handlers handlers = { list_begun, changed, deleted, synced,
							trouble };
	char collection[PATH_MAX_BYTES], selector[PATH_MAX_BYTES];
	struct kube_lease *l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	if (gethostname(l->host, sizeof(l->host) - 1) < 0)
		l->host[0] = '\0';
	snprintf(collection, sizeof(collection),
		 "/apis/coordination.k8s.io/v1/namespaces/%s/leases", in_namespace);
	snprintf(selector, sizeof(selector), "fieldSelector=metadata.name%%3D%s", name);
	l->watch = kube_watch_start(client, collection, selector, &handlers, l);
	if (!l->watch) {
		free(l);
		return -ENOMEM;
	}
	*ret = l;
	return 0;
}

struct kube_lease *kube_lease_stop(struct kube_lease *l)
{
	if (!l)
		return NULL;
	kube_watch_stop(l->watch);
	free(l);
	return NULL;
}

bool kube_lease_is_ours(const struct kube_lease *l)
{
	return l->is_ours;
}
