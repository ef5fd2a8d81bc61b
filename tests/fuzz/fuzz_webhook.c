/*
 * Reviews of pods, and pods in them: there is an answer for each that has a uid; it is let in or denied with a reason; what the
 * patch makes of a pod is let in as well, and stays as it is.
 */
#include "fuzz.h"

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "kube/util/base64.h"
#include "kube/util/quantity.h"
#include "scheduler/webhook/webhook.h"

static bool quota(void *data, const char *name, struct webhook_quota *ret)
{
	*ret = (struct webhook_quota){
		.limits = { .has = { [QUOTA_MEMORY] = true, [QUOTA_CORES] = true, [QUOTA_GPUS] = true },
			    .most = { [QUOTA_MEMORY] = 100000, [QUOTA_CORES] = 1000, [QUOTA_GPUS] = 200 } },
		.used = { { [QUOTA_GPUS] = 20 } },
	};
	return true;
}

/* As little as an operator may want, and as much. */
static const struct webhook_terms plain = {
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
	.namespaces = "none",
	.has_opt_out = true,
};

static struct webhook_terms strict(void)
{
	struct webhook_terms terms = plain;
	terms.is_forced = true;
	terms.default_cores = 10;
	terms.default_memory_bytes = UINT64_C(3) << 30;
	terms.runtime_class = "nvidia";
	terms.environment = terms.mounts = terms.privileged = GUARD_REWRITE;
	terms.guards_others = true;
	terms.has_opt_out = false;
	terms.quota = quota;
	return terms;
}

static struct webhook_terms by_claims(void)
{
	struct webhook_terms terms = plain;
	terms.device_class = "gpu.allot.dev";
	return terms;
}

/* ---- a reader of patches, by RFC 6902 ---- */

/* One step of a pointer, in place; returns what is behind it. */
static char *take_step(char *at, char **ret_step)
{
	char *end = at + strcspn(at, "/"), *to = at;
	bool is_last = !*end;
	*ret_step = at;
	for (char *from = at; from < end; from++) {
		if (*from == '~') {
			from++;
			*to++ = *from == '1' ? '/' : '~';
		} else {
			*to++ = *from;
		}
	}
	*to = '\0';
	return is_last ? NULL : end + 1;
}

static json_t *step_into(json_t *at, const char *step)
{
	return json_is_array(at) ? json_array_get(at, (size_t)atoi(step))
				 : json_object_get(at, step);
}

static void apply_one(json_t *pod, const json_t *operation)
{
	const char *kind = json_string_value(json_object_get(operation, "op"));
	char *path = strdup(json_string_value(json_object_get(operation, "path")));
	json_t *value = json_object_get(operation, "value"), *at = pod;
	char *rest = path + 1, *step = NULL;
	FUZZ_CHECK(*path == '/');
	while ((rest = take_step(rest, &step))) {
		at = step_into(at, step);
		FUZZ_CHECK(at);
	}
	if (!strcmp(kind, "remove")) {
		FUZZ_CHECK((json_is_array(at) ? json_array_remove(at, (size_t)atoi(step))
					      : json_object_del(at, step)) == 0);
	} else {
		FUZZ_CHECK(!strcmp(kind, "add") && value);
		json_t *copy = json_deep_copy(value);
		if (json_is_array(at))
			FUZZ_CHECK(!strcmp(step, "-") && json_array_append_new(at, copy) == 0);
		else
			FUZZ_CHECK(json_object_set_new(at, step, copy) == 0);
	}
	free(path);
}

/* ---- reviews ---- */

static json_t *answer_to(const struct webhook_terms *terms, const json_t *review)
{
	struct error err = { 0 };
	json_t *sizes = json_pack("[i,i]", 16384, 81920);
	struct webhook_claims claims = { .sizes_mib = sizes, .templates = json_array() };
	json_t *answer = webhook_review(terms, review, &claims, &err);
	FUZZ_CHECK(!claims.needs_sizes);
	FUZZ_CHECK(terms->device_class || !json_array_size(claims.templates));
	json_decref(claims.templates);
	json_decref(sizes);
	if (!answer) {
		FUZZ_CHECK(err.code > 0 && err.text[0]);
		return NULL;
	}
	const json_t *response = json_object_get(answer, "response");
	const json_t *why = json_object_get(response, "status");
	bool is_allowed = json_is_true(json_object_get(response, "allowed"));
	FUZZ_CHECK(json_equal(json_object_get(response, "uid"),
			      json_object_get(json_object_get(review, "request"), "uid")));
	FUZZ_CHECK(is_allowed == !why);
	FUZZ_CHECK(!json_object_get(response, "patch") == !json_object_get(response, "patchType"));
	if (why) {
		const char *text = json_string_value(json_object_get(why, "message"));
		FUZZ_CHECK(text && *text && !*text_clean_prefix_end(text, strlen(text) + 1));
		FUZZ_CHECK(!json_object_get(response, "patch"));
	}
	return answer;
}

/* Returns the pod as the review of its creation, or of its ephemeral containers, leaves it. NULL: it is denied. */
static json_t *review_pod(const struct webhook_terms *terms, json_t *pod, bool is_ephemeral)
{
	json_t *review = json_pack("{s:s,s:{s:s,s:s,s:s,s:s,s:{s:s},s:O}}", "apiVersion",
				   "admission.k8s.io/v1", "request", "uid", "u", "operation",
				   is_ephemeral ? "UPDATE" : "CREATE", "subResource",
				   is_ephemeral ? "ephemeralcontainers" : "", "namespace", "n",
				   "kind", "kind", "Pod", "object", pod);
	json_t *answer = answer_to(terms, review), *after = NULL;
	FUZZ_CHECK(answer);
	const json_t *response = json_object_get(answer, "response");
	if (json_is_true(json_object_get(response, "allowed"))) {
		const char *base64 = json_string_value(json_object_get(response, "patch"));
		char *text = NULL;
		after = json_deep_copy(pod);
		FUZZ_CHECK(!base64 || base64_decode(base64, &text) == 0);
		json_t *patch = text ? json_loads(text, JSON_ALLOW_NUL, NULL) : NULL, *operation;
		FUZZ_CHECK(!text || patch);
		size_t i;
		json_array_foreach(patch, i, operation) apply_one(after, operation);
		json_decref(patch);
		free(text);
	}
	json_decref(answer);
	json_decref(review);
	return after;
}

static void take_pod(const struct webhook_terms *terms, json_t *pod)
{
	for (int is_ephemeral = 0; is_ephemeral < 2; is_ephemeral++) {
		json_t *once = review_pod(terms, pod, is_ephemeral);
		if (!once)
			continue;
		json_t *twice = review_pod(terms, once, is_ephemeral);
		FUZZ_CHECK(twice && json_equal(once, twice));
		json_decref(twice);
		json_decref(once);
	}
}

/* That text as an amount of a resource, and as a variable and a path: of which, its length says, as it is short. */
static void take_text(const struct webhook_terms *terms, const char *text)
{
	const char *const names[] = { terms->gpu,         terms->memory,   terms->memory_pct,
				      terms->cores,       terms->priority, terms->vcuda_cores,
				      terms->vcuda_memory };
	const size_t count = sizeof(names) / sizeof(names[0]), length = strlen(text);
	const size_t i = length % count;
	bool is_vcuda = i >= 5;
	json_t *pod = json_pack(
		"{s:{s:{s:s}},s:{s:[{s:s,s:s}],s:[{s:s,s:{s:{s:s,s:s}},s:[{s:s,s:s}]}]}}",
		"metadata", "annotations", "allot.dev/workload", text, "spec", "volumes", "name",
		"v", "path", text, "containers", "name", "a", "resources", "limits",
		is_vcuda ? terms->vcuda_cores : terms->gpu, "100", names[i], text, "env", "name",
		"CUDA_DISABLE_CONTROL", "value", text);
	if (!pod)
		return; /* no UTF-8: no API server lets it in */
	if (length / count % 2)
		json_object_del(json_object_get(pod, "metadata"), "annotations");
	take_pod(terms, pod);
	json_decref(pod);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct webhook_terms terms[] = { plain, strict(), by_claims() };
	json_t *any = json_loadb((const char *)data, size,
				 JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY, NULL);
	char *text = fuzz_text(data, size);
	int64_t amount;
	quantity_parse(text, &amount, NULL);
	for (size_t i = 0; i < sizeof(terms) / sizeof(terms[0]); i++) {
		if (any) {
			json_decref(answer_to(&terms[i], any));
			take_pod(&terms[i], any);
		}
		if (size < 64)
			take_text(&terms[i], text);
	}
	free(text);
	json_decref(any);
	return 0;
}
