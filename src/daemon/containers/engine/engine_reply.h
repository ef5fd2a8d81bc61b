/*
 * Makes requests to engines and reads names from replies. All text is bounded and printable. A reply about another
 * container is rejected: docker accepts names in place of ids, so our id may be another container's name. Pure, except for
 * memory; thread safe.
 */
#pragma once

#include <stddef.h>

#define ENGINE_NAME_MAX 128
/* sizes with the NUL: a pod's name is a DNS subdomain, a namespace a DNS label */
#define ENGINE_POD_MAX 254
#define ENGINE_NAMESPACE_MAX 64
#define ENGINE_IMAGE_MAX 256

/* "" means unknown. Longer texts are cut. */
struct engine_name {
	char name[ENGINE_NAME_MAX]; /* name of the container, within its pod if it has one */
	/* the pod and its namespace in Kubernetes */
	char pod[ENGINE_POD_MAX], namespace[ENGINE_NAMESPACE_MAX];
	char image[ENGINE_IMAGE_MAX];
};

/* Return 0, -ENOENT if the reply is about another container, or -EPROTO if it is malformed. */
int engine_reply_docker(const char *text, size_t size, const char *id, struct engine_name *ret);
int engine_reply_cri(const unsigned char *data, size_t size, const char *id,
		     struct engine_name *ret);
int engine_reply_containerd(const unsigned char *data, size_t size, const char *id,
			    struct engine_name *ret);

/* The caller frees the result. NULL if out of memory. */
unsigned char *engine_request_cri(const char *id, size_t *ret_size);
unsigned char *engine_request_containerd(const char *id, size_t *ret_size);
