/*
 * The address of a Kubernetes API server, and this program's credentials for it, from a kubeconfig or from a pod's service
 * account. The files are read synchronously, so read them at start and not in an event loop.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"

/* The struct owns its strings. A string is NULL if the kubeconfig or the pod gives none. */
struct kube_access {
	char *server; /* "https://host:port", perhaps with a path, without a final '/' */
	char *ca_pem; /* NULL: the machine's own CAs */
	char *certificate_pem, *key_pem;
	char *token;
	char *token_file; /* read again for each call, because the kubelet renews the token */
	char *in_namespace;
	bool is_unverified; /* insecure-skip-tls-verify: the server's certificate is not checked */
};

/*
 * Reads the current context of a kubeconfig: a token or a client certificate, in the file or in files that it names. The error
 * names the field that is missing, invalid or not supported.
 */
int access_read_config(const char *path, struct kube_access *ret, struct error *err);

/*
 * Reads the service account in `dir`. `host` and `port` are KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT. Returns
 * -ENOENT if `host` or `port` is NULL or empty, because this process is in no pod.
 */
int access_of_pod(const char *host, const char *port, const char *dir, struct kube_access *ret,
		  struct error *err);
int access_of_this_pod(struct kube_access *ret, struct error *err);

/* `kube_api` is a setting's value: "in-cluster" (this pod's account) or a kubeconfig's path. Errors name the setting. */
int access_by_setting(const char *kube_api, struct kube_access *ret, struct error *err);

void access_free(struct kube_access *access);

/* The caller frees the text, which has no white space at its end. -EINVAL if it is empty, above 1 MiB or has a NUL. */
int access_read_file(const char *path, char **ret, struct error *err);
