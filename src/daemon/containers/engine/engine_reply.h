/*
 * What engines are asked, and what their answers say of a container: bytes in, names out. Whatever comes is
 * bounded and made printable; an answer that is about another container is none (docker takes names for ids).
 * Pure but for memory; thread safe.
 */
#pragma once

#include <stddef.h>

#define ENGINE_NAME_MAX 128
#define ENGINE_POD_MAX 254 /* a pod's name is a DNS subdomain, a namespace's a label */
#define ENGINE_NAMESPACE_MAX 64
#define ENGINE_IMAGE_MAX 256

/* "": not told. What is longer is cut. */
struct engine_name {
	char name[ENGINE_NAME_MAX]; /* the container's, in its pod where it is in one */
	char pod[ENGINE_POD_MAX], namespace[ENGINE_NAMESPACE_MAX]; /* of Kubernetes */
	char image[ENGINE_IMAGE_MAX];
};

/* 0; -ENOENT: it is about another; -EPROTO: not understood. *ret is written on success. */
int engine_reply_docker(const char *text, size_t size, const char *id, struct engine_name *ret);
int engine_reply_cri(const unsigned char *data, size_t size, const char *id,
		     struct engine_name *ret);
int engine_reply_containerd(const unsigned char *data, size_t size, const char *id,
			    struct engine_name *ret);

/* A request for that id, the caller's; NULL: no memory. */
unsigned char *engine_request_cri(const char *id, size_t *ret_size);
unsigned char *engine_request_containerd(const char *id, size_t *ret_size);
