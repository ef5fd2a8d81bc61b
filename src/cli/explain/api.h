/* Queries to a Kubernetes API server, one at a time. Not thread safe. */
#pragma once

#include <jansson.h>

#include "base/error.h"
#include "kube/client/api_access.h"

/*
 * Finds the API server and credentials as kubectl does. `config` is a kubeconfig's path. NULL selects the first existing file
 * in KUBECONFIG, else ~/.kube/config, else this pod's account. -ENOENT if there is none of these. Free *ret with access_free().
 */
int api_find(const char *config, struct kube_access *ret, struct error *err);

/*
 * Sends a GET. `token` is for a service behind the server's proxy, or NULL. Always writes the HTTP status (0: no answer) and
 * the answer (NULL unless JSON), which the caller frees. If the server refuses, the result is -errno, and `err` has its reason.
 */
int api_get(const struct kube_access *access, const char *path, const char *token, int *ret_status,
	    json_t **ret, struct error *err);
