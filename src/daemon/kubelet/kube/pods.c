#include "daemon/kubelet/kube/pods.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "kube/util/object.h"

#define SELECTOR_MAX 320

struct node_pods {
	void (*changed)(void *data);
	void (*trouble)(void *data, const struct error *err);
	void *data;
	struct kube_watch *watch;
	struct kube_pod **pod; /* has space for `room` pods */
	bool *is_listed;       /* for each pod: the arriving list has named the pod */
	size_t count, room;
	bool is_listing, is_known;
};

static size_t find(const struct node_pods *p, const char *uid)
{
	size_t i = 0;
	while (i < p->count && strcmp(p->pod[i]->uid, uid) != 0)
		i++;
	return i;
}

static void notify_changed(struct node_pods *p)
{
	if (p->changed)
		p->changed(p->data);
}

static bool make_room(struct node_pods *p)
{
	if (p->count < p->room)
		return true;
	size_t room = p->room ? p->room * 2 : 32;
	struct kube_pod **pod = realloc(p->pod, room * sizeof(*pod));
	if (!pod)
		return false;
	p->pod = pod;
	bool *is_listed = realloc(p->is_listed, room * sizeof(*is_listed));
	if (!is_listed)
		return false;
	p->is_listed = is_listed;
	p->room = room;
	return true;
}

static void put(struct node_pods *p, struct kube_pod *pod)
{
	size_t i = find(p, pod->uid);
	if (i == p->count && !make_room(p)) {
		log_warning("pod %s/%s: allotd is out of host memory, so this pod can get no GPU shares "
			    "until this pod changes or allotd lists the pods again",
			    pod->pod_namespace, pod->name);
		pod_free(pod);
		return;
	}
	if (i == p->count)
		p->count++;
	else
		pod_free(p->pod[i]);
	p->pod[i] = pod;
	p->is_listed[i] = true;
}

static void drop(struct node_pods *p, size_t i)
{
	pod_free(p->pod[i]);
	p->count--;
	p->pod[i] = p->pod[p->count];
	p->is_listed[i] = p->is_listed[p->count];
}

static void list_begins(void *data)
{
	struct node_pods *p = data;
	p->is_listing = true;
	for (size_t i = 0; i < p->count; i++)
		p->is_listed[i] = false;
}

static void object_changed(void *data, json_t *object)
{
	struct node_pods *p = data;
	struct error err;
	struct kube_pod *pod;
	json_t *essence = pod_copy_trimmed(object);
	int r = pod_read(essence, &pod, &err);
	json_decref(essence);
	if (r < 0) {
		log_warning("%s; the pod can get no GPU shares", err.text);
		return;
	}
	put(p, pod);
	if (!p->is_listing)
		notify_changed(p);
}

static void object_deleted(void *data, json_t *object)
{
	struct node_pods *p = data;
	const char *uid = object_meta_text(object, "uid");
	size_t i = uid ? find(p, uid) : p->count;
	if (i < p->count)
		drop(p, i);
	notify_changed(p);
}

static void synced(void *data)
{
	struct node_pods *p = data;
	for (size_t i = p->count; i-- > 0;)
		if (!p->is_listed[i])
			drop(p, i);
	p->is_listing = false;
	p->is_known = true;
	notify_changed(p);
}

static void watch_failed(void *data, const struct error *err)
{
	const struct node_pods *p = data;
	p->trouble(p->data, err);
}

struct node_pods *pods_start(struct kube_client *client, const char *node,
			     void (*changed)(void *data),
			     void (*trouble)(void *data, const struct error *err), void *data)
{
	static const struct watch_handlers handlers = { list_begins, object_changed, object_deleted,
							synced, watch_failed };
	char selector[SELECTOR_MAX];
	struct node_pods *p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	*p = (struct node_pods){ .changed = changed, .trouble = trouble, .data = data };
	snprintf(selector, sizeof(selector), "fieldSelector=spec.nodeName%%3D%s", node);
	p->watch = kube_watch_start(client, "/api/v1/pods", selector, &handlers, p);
	return p->watch ? p : pods_stop(p);
}

struct node_pods *pods_stop(struct node_pods *p)
{
	if (!p)
		return NULL;
	kube_watch_stop(p->watch);
	while (p->count)
		drop(p, p->count - 1);
	free(p->pod);
	free(p->is_listed);
	free(p);
	return NULL;
}

const struct kube_pod *const *pods_all(const struct node_pods *p, size_t *ret_count)
{
	*ret_count = p->count;
	return (const struct kube_pod *const *)p->pod;
}

const struct kube_pod *pods_find(const struct node_pods *p, const char *uid)
{
	size_t i = find(p, uid);
	return i < p->count ? p->pod[i] : NULL;
}

const struct kube_pod *pods_find_named(const struct node_pods *p, const char *pod_namespace,
				       const char *name)
{
	for (size_t i = 0; i < p->count; i++)
		if (!strcmp(p->pod[i]->name, name) &&
		    !strcmp(p->pod[i]->pod_namespace, pod_namespace))
			return p->pod[i];
	return NULL;
}

bool pods_are_known(const struct node_pods *p)
{
	return p->is_known;
}

struct pod_container *pod_container_new(const struct kube_pod *pod, size_t container)
{
	size_t length = strlen(pod->uid) + 1;
	struct pod_container *c = malloc(sizeof(*c) + length);
	if (!c)
		return NULL;
	c->container = container;
	memcpy(c->uid, pod->uid, length);
	return c;
}

bool pod_container_is(const struct pod_container *c, const struct kube_pod *pod, size_t container)
{
	return c->container == container && !strcmp(c->uid, pod->uid);
}
