/*
 * Queries to a Kubernetes API server, one at a time. Address and credentials come from a kubeconfig or a pod's service account,
 * as kubectl finds them. Not thread safe.
 */
#pragma once

#include <jansson.h>

#include "base/error.h"
#include "kube/client/api_access.h"

/*
 * Finds the server and credentials. `config` is the path of a kubeconfig. If it is NULL, the first existing file of KUBECONFIG
 * is used, else ~/.kube/config, else the service account of the pod that this program runs in. Returns -ENOENT if there is none
 * of these, or another -errno with the reason. Free *ret with access_free().
 */
int api_find(const char *config, struct kube_access *ret, struct error *err);

/*
 * Sends a GET. `token` is for the service behind the server's proxy; NULL if there is none. Writes the HTTP status to
 * *ret_status, 0 if there was no answer. Writes the answer to *ret if it was JSON, else NULL. Also writes both if the server
 * refuses; the result is then -errno, with the server's reason in `err`.
 */
int api_get(const struct kube_access *access, const char *path, const char *token, int *ret_status,
	    json_t **ret, struct error *err);
