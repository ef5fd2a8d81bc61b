/*
 * Questions to a Kubernetes API server, one at a time: who it is comes from a kubeconfig or a pod's account, as kubectl
 * finds them. One thread.
 */
#pragma once

#include <jansson.h>

#include "base/error.h"
#include "kube/client/access.h"

/*
 * `config`: a kubeconfig's path; NULL: KUBECONFIG (the first file of it that is there), else ~/.kube/config, else the account
 * of the pod that we are in. -ENOENT: there is none of these; -errno with what of it is wrong. To be freed by access_free().
 */
int api_find(const char *config, struct kube_access *ret, struct error *err);

/*
 * GET. `token`: for who answers behind the server's proxy; NULL: none. *ret_status: of HTTP; 0: there was no answer. *ret: the answer, if it was JSON; else NULL; also of a refusal, for
 * which -errno is returned, with the server's reason.
 */
int api_get(const struct kube_access *access, const char *path, const char *token, int *ret_status,
	    json_t **ret, struct error *err);
