/*
 * Where a Kubernetes API server is, and who we are to it: of a kubeconfig, or of the service account that
 * a pod has. Files are small and read at once: at start, not from an event loop.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"

/* Everything is owned; absent is NULL. */
struct kube_access {
	char *server; /* "https://host:port", perhaps with a path, without '/' at its end */
	char *ca_pem; /* NULL: those that the machine trusts */
	char *certificate_pem, *key_pem;
	char *token;
	char *token_file;   /* its token is read again for each call: the kubelet changes it */
	char *in_namespace; /* where nobody names another; NULL: it does not say */
	bool is_unverified; /* insecure-skip-tls-verify: anybody may pretend to be the server */
};

/*
 * The current context of a kubeconfig: token or client certificate, in the file or in files beside it.
 * -errno with the field that is missing, broken or not understood.
 */
int access_read_config(const char *path, struct kube_access *ret, struct error *err);

/*
 * The service account in `dir`, for the server at host and port, which Kubernetes puts into a pod's environment
 * (KUBERNETES_SERVICE_HOST, _PORT). -ENOENT: one of them is NULL, so this is no pod.
 */
int access_of_pod(const char *host, const char *port, const char *dir, struct kube_access *ret,
		  struct error *err);
/* The same for the pod that this process is in. */
int access_of_this_pod(struct kube_access *ret, struct error *err);

/* By the setting kube_api: "in-cluster" is this pod's account, else the path of a kubeconfig. The error names the setting. */
int access_by_setting(const char *kube_api, struct kube_access *ret, struct error *err);

void access_free(struct kube_access *access);

/* A file's text without blanks at its end, to be freed. -errno; nothing in it, or too much: -EINVAL. */
int access_read_file(const char *path, char **ret, struct error *err);
