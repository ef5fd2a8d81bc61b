#include "daemon/containers/engine/engine_reply.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "daemon/containers/engine/containerd.pb-c.h"
#include "daemon/containers/engine/cri.pb-c.h"
#include "daemon/util/json.h"
#include "kube/util/untrusted_json.h"

/* Labels of the kubelet (kubernetes, pkg/kubelet/types/labels.go) and of nerdctl (pkg/labels). */
#define LABEL_POD "io.kubernetes.pod.name"
#define LABEL_NAMESPACE "io.kubernetes.pod.namespace"
#define LABEL_CONTAINER "io.kubernetes.container.name"
#define LABEL_NERDCTL "nerdctl/name"

static void put(char *field, size_t size, const char *text)
{
	if (!text)
		return;
	size_t n = strnlen(text, size - 1);
	memcpy(field, text, n);
	field[n] = '\0';
	text_clean(field);
}
#define PUT(field, text) put(field, sizeof(field), text)

static void put_label(struct engine_name *name, const char *key, const char *value)
{
	if (!strcmp(key, LABEL_POD))
		PUT(name->pod, value);
	else if (!strcmp(key, LABEL_NAMESPACE))
		PUT(name->namespace, value);
	else if (!strcmp(key, LABEL_CONTAINER) || !strcmp(key, LABEL_NERDCTL))
		PUT(name->name, value);
}

/* Source of the format: docs.docker.com, Engine API, ContainerInspect. Podman uses the same format. */
int engine_reply_docker(const char *text, size_t size, const char *id, struct engine_name *ret)
{
	struct engine_name name = { 0 };
	cleanup_json json_t *root = untrusted_json_parse(text, size, 0, NULL);
	const json_t *config = json_object_get(root, "Config");
	const char *own_id = json_string_value(json_object_get(root, "Id"));
	const char *own_name = json_string_value(json_object_get(root, "Name")), *key;
	json_t *value;
	if (!own_id || !own_name)
		return -EPROTO;
	if (strcmp(own_id, id) != 0)
		return -ENOENT;
	PUT(name.name, own_name + (*own_name == '/'));
	PUT(name.image, json_string_value(json_object_get(config, "Image")));
	json_object_foreach(json_object_get(config, "Labels"), key, value) if (json_is_string(value))
		put_label(&name, key, json_string_value(value));
	*ret = name;
	return 0;
}

unsigned char *engine_request_cri(const char *id, size_t *ret_size)
{
	Cri__ContainerStatusRequest request = CRI__CONTAINER_STATUS_REQUEST__INIT;
	request.container_id = (char *)(uintptr_t)id;
	unsigned char *data = malloc(cri__container_status_request__get_packed_size(&request) + 1);
	if (data)
		*ret_size = cri__container_status_request__pack(&request, data);
	return data;
}

static void read_status(const Cri__ContainerStatus *status, struct engine_name *name)
{
	PUT(name->name, status->metadata ? status->metadata->name : NULL);
	PUT(name->image,
	    status->image && status->image->image[0] ? status->image->image : status->image_ref);
	for (size_t i = 0; i < status->n_labels; i++)
		put_label(name, status->labels[i]->key, status->labels[i]->value);
}

int engine_reply_cri(const unsigned char *data, size_t size, const char *id, struct engine_name *ret)
{
	struct engine_name name = { 0 };
	Cri__ContainerStatusResponse *reply = cri__container_status_response__unpack(NULL, size,
										     data);
	int r = !reply || !reply->status             ? -EPROTO
		: strcmp(reply->status->id, id) != 0 ? -ENOENT
						     : 0;
	if (r >= 0) {
		read_status(reply->status, &name);
		*ret = name;
	}
	if (reply)
		cri__container_status_response__free_unpacked(reply, NULL);
	return r;
}

unsigned char *engine_request_containerd(const char *id, size_t *ret_size)
{
	Containerd__GetContainerRequest request = CONTAINERD__GET_CONTAINER_REQUEST__INIT;
	request.id = (char *)(uintptr_t)id;
	unsigned char *data = malloc(containerd__get_container_request__get_packed_size(&request) +
				     1);
	if (data)
		*ret_size = containerd__get_container_request__pack(&request, data);
	return data;
}

int engine_reply_containerd(const unsigned char *data, size_t size, const char *id,
			    struct engine_name *ret)
{
	struct engine_name name = { 0 };
	Containerd__GetContainerResponse *reply = containerd__get_container_response__unpack(
		NULL, size, data);
	const Containerd__Container *c = reply ? reply->container : NULL;
	int r = !c ? -EPROTO : strcmp(c->id, id) != 0 ? -ENOENT : 0;
	if (r >= 0) {
		/* ctr gives containers no name. Its user chooses the id, so use the id as the name. */
		PUT(name.name, c->id);
		PUT(name.image, c->image);
		for (size_t i = 0; i < c->n_labels; i++)
			put_label(&name, c->labels[i]->key, c->labels[i]->value);
		*ret = name;
	}
	if (reply)
		containerd__get_container_response__free_unpacked(reply, NULL);
	return r;
}
