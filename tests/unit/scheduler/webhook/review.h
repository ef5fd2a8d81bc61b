/* Admission reviews of pods, for tests of the webhook. In the JSON of these tests ' stands for ". */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "kube/util/base64.h"
#include "scheduler/webhook/webhook.h"

static inline json_t *json_of(const char *text)
{
	char *quoted = strdup(text);
	json_error_t error;
	for (char *c = quoted; *c; c++)
		if (*c == '\'')
			*c = '"';
	json_t *value = json_loads(quoted, 0, &error);
	if (!value)
		fail_msg("%s: %s", quoted, error.text);
	free(quoted);
	return value;
}

static const struct webhook_terms default_terms = {
	.scheduler = "allot-scheduler",
	.gpu = "nvidia.com/gpu",
	.memory = "nvidia.com/gpumem",
	.memory_pct = "nvidia.com/gpumem-percentage",
	.cores = "nvidia.com/gpucores",
	.priority = "nvidia.com/priority",
	.vcuda_cores = "tencent.com/vcuda-core",
	.vcuda_memory = "tencent.com/vcuda-memory",
	.default_gpus = 1,
	.runtime_class = "none",
	.privileged = GUARD_DENY,
	.host_paths = "/dev/shm*",
	.images = "*",
	.namespaces = "kube-system",
	.has_opt_out = true,
};

/* Returns the webhook's response to this request. Takes ownership of the request. The caller owns the response. */
static inline json_t *respond_to_request(const struct webhook_terms *terms, json_t *request)
{
	struct error err = { 0 };
	json_t *review = json_pack("{s:s,s:s,s:o}", "apiVersion", "admission.k8s.io/v1", "kind",
				   "AdmissionReview", "request", request);
	assert_non_null(review);
	json_t *answer = webhook_review(terms, review, NULL, &err);
	if (!answer)
		fail_msg("%s", err.text);
	assert_string_equal(json_string_value(json_object_get(answer, "kind")), "AdmissionReview");
	json_t *response = json_incref(json_object_get(answer, "response"));
	assert_string_equal(json_string_value(json_object_get(response, "uid")), "u-1");
	/* A response has both keys or neither. */
	assert_int_equal(!json_object_get(response, "patch"),
			 !json_object_get(response, "patchType"));
	json_decref(answer);
	json_decref(review);
	return response;
}

/* Returns the webhook's response to the creation of this pod. The caller owns the response. */
static inline json_t *respond_to(const struct webhook_terms *terms, const char *pod,
				 const char *in_namespace)
{
	return respond_to_request(terms, json_pack("{s:s,s:s,s:s,s:{s:s},s:o}", "uid", "u-1",
						   "operation", "CREATE", "namespace", in_namespace,
						   "kind", "kind", "Pod", "object", json_of(pod)));
}

/* Returns the webhook's response to a running pod's getting ephemeral containers. The caller owns the response. */
static inline json_t *respond_to_ephemeral(const struct webhook_terms *terms, const char *old,
					   const char *pod)
{
	return respond_to_request(terms, json_pack("{s:s,s:s,s:s,s:s,s:{s:s},s:o,s:o}", "uid",
						   "u-1", "operation", "UPDATE", "subResource",
						   "ephemeralcontainers", "namespace", "default",
						   "kind", "kind", "Pod", "oldObject", json_of(old),
						   "object", json_of(pod)));
}

/* Returns the response's JSON patch as a list, which is empty without a patch. The caller owns the list. */
static inline json_t *patch_of(const json_t *response)
{
	const char *base64 = json_string_value(json_object_get(response, "patch"));
	char *text = NULL;
	if (!base64)
		return json_array();
	assert_int_equal(base64_decode(base64, &text), 0);
	json_t *patch = json_loads(text, 0, NULL);
	free(text);
	assert_non_null(patch);
	return patch;
}

static inline void assert_json(const char *what, const json_t *is, const char *expected)
{
	json_t *right = json_of(expected);
	char *text = json_dumps(is, JSON_COMPACT | JSON_ENCODE_ANY);
	if (!json_equal(is, right))
		fail_msg("%s: is\n%s, expected\n%s", what, text, expected);
	free(text);
	json_decref(right);
}

/* The webhook must admit the pod with this patch, and with one warning that contains `warning` (NULL: no warning). */
static inline void assert_patch(const struct webhook_terms *terms, const char *pod,
				const char *expected, const char *warning)
{
	json_t *response = respond_to(terms, pod, "default");
	const json_t *warnings = json_object_get(response, "warnings");
	const char *said = json_string_value(json_array_get(warnings, 0));
	if (!json_is_true(json_object_get(response, "allowed"))) {
		const json_t *status = json_object_get(response, "status");
		fail_msg("%s: denied: %s", pod,
			 json_string_value(json_object_get(status, "message")));
	}
	json_t *patch = patch_of(response);
	assert_json(pod, patch, expected);
	if (!warning != !said || (warning && !strstr(said, warning)) ||
	    json_array_size(warnings) > 1)
		fail_msg("%s: warning '%s'", pod, said ? said : "(none)");
	json_decref(patch);
	json_decref(response);
}

static inline void assert_denied(const struct webhook_terms *terms, const char *pod, int code,
				 const char *text)
{
	json_t *response = respond_to(terms, pod, "default");
	const json_t *status = json_object_get(response, "status");
	const char *message = json_string_value(json_object_get(status, "message"));
	if (json_is_true(json_object_get(response, "allowed")))
		fail_msg("%s: allowed", pod);
	if (!message || !strstr(message, text) ||
	    json_integer_value(json_object_get(status, "code")) != code)
		fail_msg("%s: '%s'", pod, message ? message : "");
	assert_null(json_object_get(response, "patch"));
	json_decref(response);
}
