#include "daemon/kubelet/devices/pod_key.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

bool pod_key_parse(const char *key, struct pod_key *ret)
{
	if (strncmp(key, POD_KEY, strlen(POD_KEY)) != 0 || strlen(key) >= sizeof(ret->text))
		return false;
	strcpy(ret->text, key + strlen(POD_KEY));
	char *container = strchr(ret->text, '/');
	if (!container)
		return false;
	*container++ = '\0';
	char *device = strchr(container, '/');
	if (device)
		*device++ = '\0';
	container[strcspn(container, "@")] = '\0';
	ret->uid = ret->text;
	ret->container = container;
	ret->device = device;
	return true;
}

int pod_key_make(const struct kube_pod *pod, size_t container, const char *device,
		 char ret_key[TENANT_CLAIM_MAX], struct error *err)
{
	char stage[32] = "";
	if (container < pod->init_containers)
		snprintf(stage, sizeof(stage), "@%zu%s", container,
			 pod_is_sidecar(pod, container) ? "+" : "");
	int n = snprintf(ret_key, TENANT_CLAIM_MAX, POD_KEY "%s/%s%s%s%s", pod->uid,
			 pod->container[container], stage, device ? "/" : "", device ? device : "");
	return n < TENANT_CLAIM_MAX
		       ? 0
		       : error_set(
				 err, EINVAL,
				 "the pod's uid and container's name are too long together: use a shorter name");
}

bool pod_key_is_of(const char *key, const char *uid, const char *container)
{
	struct pod_key k;
	return pod_key_parse(key, &k) && !strcmp(k.uid, uid) && !strcmp(k.container, container);
}
