/* Pods that ask in their limits, and the claims that they come to ask by. */
#include "review.h"

#include <ctype.h>
#include <errno.h>

#define GPU_ATTRIBUTES "device.attributes[\\\"gpu.allot.dev\\\"]"
#define CEL(expression) "{'cel':{'expression':" expression "}}"

static json_t *sizes; /* NULL: not known */

struct outcome {
	json_t *response, *templates, *patch;
	bool needs_sizes;
};

static struct outcome review(const char *pod)
{
	struct webhook_terms terms = default_terms;
	terms.device_class = "gpu.allot.dev";
	struct webhook_claims claims = { .sizes_mib = sizes, .templates = json_array() };
	struct error err = { 0 };
	json_t *object = json_pack("{s:s,s:{s:s,s:s,s:s,s:{s:s},s:o}}", "apiVersion",
				   "admission.k8s.io/v1", "request", "uid", "u-1", "operation",
				   "CREATE", "namespace", "team", "kind", "kind", "Pod", "object",
				   json_of(pod));
	json_t *answer = webhook_review(&terms, object, &claims, &err);
	assert_non_null(answer);
	struct outcome o = { .response = json_incref(json_object_get(answer, "response")),
			     .templates = claims.templates,
			     .needs_sizes = claims.needs_sizes };
	o.patch = patch_of(o.response);
	json_decref(answer);
	json_decref(object);
	return o;
}

static void forget(struct outcome *o)
{
	json_decref(o->response);
	json_decref(o->templates);
	json_decref(o->patch);
}

static const char *denied(const struct outcome *o)
{
	return json_string_value(json_object_get(json_object_get(o->response, "status"), "message"));
}

static const char *warning(const struct outcome *o)
{
	const char *said = json_string_value(
		json_array_get(json_object_get(o->response, "warnings"), 0));
	return said ? said : "";
}

/* Of the only template. */
static void assert_devices(const char *pod, const char *expected)
{
	struct outcome o = review(pod);
	if (denied(&o))
		fail_msg("%s: denied: %s", pod, denied(&o));
	assert_int_equal(json_array_size(o.templates), 1);
	const json_t *spec = json_object_get(json_array_get(o.templates, 0), "spec");
	assert_json(pod, json_object_get(json_object_get(spec, "spec"), "devices"), expected);
	forget(&o);
}

static void assert_refused(const char *pod, const char *part)
{
	struct outcome o = review(pod);
	if (!denied(&o) || !strstr(denied(&o), part))
		fail_msg("%s: '%s'", pod, denied(&o) ? denied(&o) : "(allowed)");
	forget(&o);
}

#define LIMITS(limits) "'resources':{'limits':{" limits "}}"
#define POD(annotations, limits) \
	"{'metadata':{'annotations':{" annotations \
	"}},'spec':{'containers':[{'name':'main'," LIMITS(limits) "}]}}"
#define CLASS "'deviceClassName':'gpu.allot.dev'"
#define ONE(rest) "{'name':'gpu','exactly':{" CLASS rest "}}"
#define CAPACITY(amounts) ",'capacity':{'requests':{" amounts "}}"
#define TERMS(fields) \
	",'config':[{'opaque':{'driver':'gpu.allot.dev','parameters':{'apiVersion':'gpu.allot.dev/v1'," \
	"'kind':'GpuTerms'," fields "}}}]"

static void test_amounts(void **state)
{
	static const struct {
		const char *pod, *devices;
	} rows[] = {
		/* A count alone is a GPU alone. */
		{ POD("", "'nvidia.com/gpu':'1'"),
		  "{'requests':[" ONE(CAPACITY("'cores':'100'")) "]}" },
		{ POD("",
		      "'nvidia.com/gpu':'1','nvidia.com/gpumem':'3000','nvidia.com/gpucores':'30'"),
		  "{'requests':[" ONE(CAPACITY("'memory':'3000Mi','cores':'30'")) "]}" },
		{ POD("", "'nvidia.com/gpumem':'8Gi'"),
		  "{'requests':[" ONE(CAPACITY("'memory':'8192Mi'")) "]}" },
		{ POD("", "'nvidia.com/gpucores':'30'"),
		  "{'requests':[" ONE(CAPACITY("'cores':'30'")) "]}" },
		{ POD("", "'nvidia.com/gpumem-percentage':'100'"), "{'requests':[" ONE("") "]}" },
		{ POD("", "'nvidia.com/gpumem':'100','nvidia.com/priority':'0'"),
		  "{'requests':[" ONE(CAPACITY("'memory':'100Mi'")) "]" TERMS("'priority':10") "}" },
		{ POD("", "'nvidia.com/gpumem':'100','nvidia.com/priority':'1'"),
		  "{'requests':[" ONE(CAPACITY("'memory':'100Mi'")) "]}" },
		/* gpu-manager's: its limit is hard unless it says so. */
		{ POD("", "'tencent.com/vcuda-core':'30','tencent.com/vcuda-memory':'32'"),
		  "{'requests':[" ONE(CAPACITY("'memory':'8192Mi','cores':'30'")) "]" TERMS(
			  "'coresLimit':30") "}" },
		{ POD("'tencent.com/vcuda-core-limit':'50'",
		      "'tencent.com/vcuda-core':'30','tencent.com/vcuda-memory':'32'"),
		  "{'requests':[" ONE(CAPACITY("'memory':'8192Mi','cores':'30'")) "]" TERMS(
			  "'coresLimit':50") "}" },
		/* allot's own. */
		{ POD("'allot.dev/on-full':'wait','allot.dev/priority':'-5','allot.dev/cores-limit':'60',"
		      "'allot.dev/sharing':'space','allot.dev/group':'trainers','allot.dev/memory':'4GiB',"
		      "'allot.dev/cores':'12.5'",
		      "'nvidia.com/gpumem':'3000','nvidia.com/priority':'0'"),
		  "{'requests':[" ONE(CAPACITY("'memory':'4096Mi','cores':'13'")) "]" TERMS(
			  "'coresLimit':60,'priority':-5,'onFull':'wait','sharing':'space',"
			  "'group':'trainers'") "}" },
		{ POD("'main.allot.dev/on-full':'swap','allot.dev/on-full':'fail'",
		      "'nvidia.com/gpumem':'3000'"),
		  "{'requests':[" ONE(CAPACITY("'memory':'3000Mi'")) "]" TERMS(
			  "'onFull':'swap'") "}" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_devices(rows[i].pod, rows[i].devices);
}

#define NUMBERED(number, rest) "{'name':'gpu-" number "','exactly':{" CLASS rest "}}"
#define WHOLE_GPUS ",'selectors':[" CEL("'" GPU_ATTRIBUTES ".type == \\\"gpu\\\"'") "]"

static void test_several_gpus(void **state)
{
	assert_devices(
		POD("'nvidia.com/numa-bind':'true'",
		    "'nvidia.com/gpu':'2','nvidia.com/gpumem':'100'"),
		"{'requests':[" NUMBERED("0", CAPACITY("'memory':'100Mi'") WHOLE_GPUS) "," NUMBERED(
			"1",
			CAPACITY("'memory':'100Mi'")
				WHOLE_GPUS) "],"
					    "'constraints':[{'requests':['gpu-0','gpu-1'],'distinctAttribute':'gpu.allot.dev/uuid'},"
					    "{'requests':['gpu-0','gpu-1'],'matchAttribute':'gpu.allot.dev/numaNode'}]}");
	assert_devices(
		POD("'allot.dev/cores-limit':'50,60','allot.dev/memory':'1GiB,2GiB'",
		    "'nvidia.com/gpu':'2','nvidia.com/gpumem':'100'"),
		"{'requests':[" NUMBERED("0", CAPACITY("'memory':'1024Mi'") WHOLE_GPUS) "," NUMBERED(
			"1",
			CAPACITY("'memory':'2048Mi'")
				WHOLE_GPUS) "],"
					    "'constraints':[{'requests':['gpu-0','gpu-1'],'distinctAttribute':'gpu.allot.dev/uuid'}],"
					    "'config':[{'requests':['gpu-0'],'opaque':{'driver':'gpu.allot.dev','parameters':{"
					    "'apiVersion':'gpu.allot.dev/v1','kind':'GpuTerms','coresLimit':50}}},"
					    "{'requests':['gpu-1'],'opaque':{'driver':'gpu.allot.dev','parameters':{"
					    "'apiVersion':'gpu.allot.dev/v1','kind':'GpuTerms','coresLimit':60}}}]}");
	assert_devices(
		POD("'allot.dev/cards':'2'",
		    "'tencent.com/vcuda-core':'60','tencent.com/vcuda-memory':'8'"),
		"{'requests':[" NUMBERED("0", CAPACITY("'memory':'1024Mi','cores':'30'") WHOLE_GPUS) "," NUMBERED(
			"1",
			CAPACITY("'memory':'1024Mi','cores':'30'")
				WHOLE_GPUS) "],"
					    "'constraints':[{'requests':['gpu-0','gpu-1'],'distinctAttribute':'gpu.allot.dev/uuid'}]" TERMS(
						    "'coresLimit':30") "}");
}

static void test_which_gpus(void **state)
{
	assert_devices(
		POD("'nvidia.com/use-gputype':'A100, H200','nvidia.com/nouse-gputype':'PCIe',"
		    "'nvidia.com/use-gpuuuid':'GPU-1','nvidia.com/nouse-gpuuuid':'GPU-2,GPU-3',"
		    "'nvidia.com/vgpu-mode':'mig'",
		    "'nvidia.com/gpumem':'100'"),
		"{'requests':[" ONE(CAPACITY("'memory':'100Mi'") ",'selectors':[" CEL("'[\\\"a100\\\", \\\"h200\\\"].exists(part, " GPU_ATTRIBUTES ".productName.lowerAscii().contains(part))'") "," CEL(
			"'![\\\"pcie\\\"].exists(part, " GPU_ATTRIBUTES
			".productName.lowerAscii().contains(part))'") "," CEL("'" GPU_ATTRIBUTES
									      ".uuid in [\\\"GPU-1\\\"]'") "," CEL("'!(" GPU_ATTRIBUTES
														   ".uuid in [\\\"GPU-2\\\", \\\"GPU-3\\\"])'") "," CEL("'" GPU_ATTRIBUTES
																					".type == \\\"mig\\\"'") "]") "]}");
	assert_refused(
		POD("'nvidia.com/use-gputype':'A\\\") || true'", "'nvidia.com/gpu':'1'"),
		"nvidia.com/use-gputype: 'A\") || true': must have only letters, digits, blanks and -_./():");
	assert_refused(POD("'nvidia.com/vgpu-mode':'mps'", "'nvidia.com/gpu':'1'"),
		       "'mps': must be hami-core or mig");
}

static void test_a_part_of_each_size(void **state)
{
	static const char pod[] = POD(
		"", "'nvidia.com/gpumem-percentage':'25','nvidia.com/gpucores':'5'");
	struct outcome o = review(pod);
	assert_true(o.needs_sizes);
	assert_int_equal(json_array_size(o.templates), 0);
	forget(&o);
	sizes = json_pack("[i,i]", 16384, 81920);
#define SIZE(number, part, all) \
	"{'name':'size-" number \
	"'," CLASS CAPACITY("'memory':'" part "Mi','cores':'5'") ",'selectors':[" CEL( \
		"'" GPU_ATTRIBUTES ".type == \\\"gpu\\\" && " GPU_ATTRIBUTES ".memoryMiB == " all \
		"'") "]}"
	assert_devices(pod, "{'requests':[{'name':'gpu','firstAvailable':[" SIZE(
				    "0", "4096", "16384") "," SIZE("1", "20480", "81920") "]}]}");
	json_decref(sizes);
	sizes = json_array();
	assert_refused(
		pod,
		"and percentages work with 1 to 8 sizes only: check that there are ResourceSlices of gpu.allot.dev, or ask for MiB with ");
	for (int i = 1; i < 10; i++)
		json_array_append_new(sizes, json_integer(i));
	assert_refused(
		pod,
		"have 9 different memory sizes, and percentages work with 1 to 8 sizes only: ask for MiB with "
		"nvidia.com/gpumem");
	json_decref(sizes);
	sizes = NULL;
}

static void test_what_a_claim_can_not_say(void **state)
{
	static const struct {
		const char *pod, *why;
	} rows[] = {
		{ POD("'hami.io/gpu-scheduler-policy':'mutex'", "'nvidia.com/gpu':'1'"),
		  "mutex: a ResourceClaim can't keep other pods off a GPU" },
		{ POD("'allot.dev/gang':'g','allot.dev/gang-size':'2'", "'nvidia.com/gpu':'1'"),
		  "allot.dev/gang: pods with ResourceClaims are placed by the cluster's own scheduler" },
		{ POD("'allot.dev/placement':'use'", "'nvidia.com/gpumem':'1'"),
		  "allot.dev/placement: 'use': must be 'guarantee', because pods with ResourceClaims are placed by "
		  "their guarantees" },
		{ POD("", "'nvidia.com/gpu':'17'"),
		  "container main: requests 17 GPUs: must be at most 16" },
		{ POD("'allot.dev/memory':'1GiB,2GiB'", "'nvidia.com/gpu':'3'"),
		  "allot.dev/memory: has 2 values for 3 GPUs" },
		{ POD("'allot.dev/cores-limit':'20'", "'nvidia.com/gpucores':'30'"),
		  "a limit of 20 % is less than the 30 %" },
		{ POD("'allot.dev/nonsense':'1'", "'nvidia.com/gpu':'1'"),
		  "allot.dev/nonsense: there is no such annotation" },
		{ "{'spec':{'nodeName':'n','containers':[{'name':'a'," LIMITS(
			  "'nvidia.com/gpu':'1'") "}]}}",
		  "pods with GPUs must be placed by default-scheduler" },
		{ "{'spec':{'resourceClaims':[{'name':'a'}],'containers':[{'name':'a'," LIMITS(
			  "'nvidia.com/gpu':'1'") "}]}}",
		  "container a: spec.resourceClaims already has 'a'" },
		{ "{'spec':{'containers':[{'name':'a','resources':{'requests':{'nvidia.com/gpumem':'1'}}}]"
		  "}}",
		  "container a: nvidia.com/gpumem: is in requests only: add it to limits" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_refused(rows[i].pod, rows[i].why);
	struct outcome o = review(
		POD("'hami.io/gpu-scheduler-policy':'binpack'", "'nvidia.com/gpu':'1'"));
	assert_non_null(strstr(warning(&o), "hami.io/gpu-scheduler-policy: is ignored"));
	forget(&o);
}

static const char *name_of(const struct outcome *o, size_t i)
{
	return json_string_value(json_object_get(
		json_object_get(json_array_get(o->templates, i), "metadata"), "name"));
}

/* The same terms have the same name, in every pod; others another. It is what Kubernetes takes for one. */
static void test_names(void **state)
{
	static const char a[] = POD("", "'nvidia.com/gpumem':'100'");
	struct outcome one = review(a), two = review(a),
		       other = review(POD("", "'nvidia.com/gpumem':'101'"));
	assert_string_equal(name_of(&one, 0), name_of(&two, 0));
	assert_string_not_equal(name_of(&one, 0), name_of(&other, 0));
	assert_int_equal(strlen(name_of(&one, 0)), strlen("allot-") + 32);
	const json_t *metadata = json_object_get(json_array_get(one.templates, 0), "metadata");
	assert_json("metadata", json_object_get(metadata, "labels"),
		    "{'app.kubernetes.io/managed-by':'allot-scheduler'}");
	assert_string_equal(json_string_value(json_object_get(metadata, "namespace")), "team");
	forget(&one);
	forget(&two);
	forget(&other);
}

/* The pod: limits and requests go, claims come, and the cluster's own scheduler places it. */
static void test_the_pod(void **state)
{
	struct outcome o = review(
		"{'spec':{'schedulerName':'allot-scheduler','containers':[{'name':'main','resources':{"
		"'limits':{'cpu':'1','nvidia.com/gpu':'1','nvidia.com/gpumem':'100'},"
		"'requests':{'nvidia.com/gpu':'1','nvidia.com/gpumem':'100'}}}]}}");
	char expected[2048];
	snprintf(expected, sizeof(expected),
		 "[{'op':'add','path':'/spec/resourceClaims','value':[]},"
		 "{'op':'add','path':'/spec/resourceClaims/-','value':{'name':'main',"
		 "'resourceClaimTemplateName':'%s'}},"
		 "{'op':'remove','path':'/spec/containers/0/resources/limits/nvidia.com~1gpu'},"
		 "{'op':'remove','path':'/spec/containers/0/resources/limits/nvidia.com~1gpumem'},"
		 "{'op':'remove','path':'/spec/containers/0/resources/requests/nvidia.com~1gpu'},"
		 "{'op':'remove','path':'/spec/containers/0/resources/requests/nvidia.com~1gpumem'},"
		 "{'op':'add','path':'/spec/containers/0/resources/claims','value':[]},"
		 "{'op':'add','path':'/spec/containers/0/resources/claims/-','value':{'name':'main'}},"
		 "{'op':'add','path':'/spec/schedulerName','value':'default-scheduler'}]",
		 name_of(&o, 0));
	assert_json("patch", o.patch, expected);
	forget(&o);
	/* Another scheduler's pods are not ours, and those without GPUs stay as they are. */
	o = review("{'spec':{'schedulerName':'volcano','containers':[{'name':'a'," LIMITS(
		"'nvidia.com/gpu':'1'") "}]}}");
	assert_json("volcano", o.patch, "[]");
	forget(&o);
	o = review("{'spec':{'containers':[{'name':'a'," LIMITS("'cpu':'1'") "}]}}");
	assert_json("none", o.patch, "[]");
	assert_int_equal(json_array_size(o.templates), 0);
	forget(&o);
}

/* The claim that each container has, in the order of the patch: main containers first. */
static void assert_claims(const char *pod, size_t templates, const char *expected, const char *said)
{
	struct outcome o = review(pod);
	json_t *operation, *found = json_object();
	size_t i;
	if (denied(&o))
		fail_msg("%s: denied: %s", pod, denied(&o));
	json_array_foreach(o.patch, i, operation)
	{
		const char *path = json_string_value(json_object_get(operation, "path"));
		const char *end = strstr(path, "/resources/claims/-");
		if (end)
			json_object_set_new(found, strndupa(path, (size_t)(end - path)),
					    json_incref(json_object_get(
						    json_object_get(operation, "value"), "name")));
	}
	assert_json(pod, found, expected);
	json_decref(found);
	assert_int_equal(json_array_size(o.templates), templates);
	if (!strstr(warning(&o), said))
		fail_msg("%s: warning '%s'", pod, warning(&o));
	forget(&o);
}

static void test_several_containers(void **state)
{
#define C(name, memory) "{'name':'" name "'," LIMITS("'nvidia.com/gpumem':'" memory "'") "}"
#define SIDECAR(name, memory) \
	"{'name':'" name \
	"','restartPolicy':'Always'," LIMITS("'nvidia.com/gpumem':'" memory "'") "}"
	/* Each has a tenant of its own, by one template where they ask for the same. */
	assert_claims(
		"{'spec':{'containers':[" C("a", "10") "," C("b", "10") "," C("c", "20") "]}}", 2,
		"{'/spec/containers/0':'a','/spec/containers/1':'b','/spec/containers/2':'c'}", "");
	/* An init container has ended before: it has another's claim where it asks for the same. */
	assert_claims(
		"{'spec':{'initContainers':[" C("x", "10") "," C("y", "10") "],'containers':[" C(
			"a", "10") "]}}",
		1,
		"{'/spec/containers/0':'a','/spec/initContainers/0':'a','/spec/initContainers/1':'a'}",
		"");
	assert_claims(
		"{'spec':{'initContainers':[" C("x", "5") "," C("y", "5") "," C(
			"z", "5") "],"
				  "'containers':[" C("a", "10") "]}}",
		2,
		"{'/spec/containers/0':'a','/spec/initContainers/0':'x','/spec/initContainers/1':'x',"
		"'/spec/initContainers/2':'x'}",
		"init container x: its GPU share stays assigned until the pod ends");
	/* A sidecar runs beside all others. */
	assert_claims("{'spec':{'initContainers':[" SIDECAR("s", "5") "," C(
			      "x", "5") "],"
					"'containers':[{'name':'a'}]}}",
		      1, "{'/spec/initContainers/0':'s','/spec/initContainers/1':'x'}",
		      "container x: its GPU share");
}

static bool quota(void *data, const char *name, struct webhook_quota *ret)
{
	*ret = (struct webhook_quota){ .limits = { .has = { [QUOTA_MEMORY] = true } } };
	return true;
}

static void test_quota(void **state)
{
	struct webhook_terms terms = default_terms;
	terms.device_class = "gpu.allot.dev";
	terms.quota = quota;
	assert_denied(&terms, POD("", "'nvidia.com/gpumem':'1'"), 403,
		      "namespace default: a ResourceQuota limits nvidia.com/gpumem. Pods here get "
		      "ResourceClaims, and that quota does not count claims: limit "
		      "gpu.allot.dev.deviceclass.resource.k8s.io/devices instead");
}

static void test_deny(void **state)
{
	static const struct {
		int code, status;
	} rows[] = { { EACCES, 403 }, { EINVAL, 422 }, { EBUSY, 503 }, { ETIMEDOUT, 503 } };
	json_t *object = json_of("{'request':{'uid':'u'}}");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct error why = { .code = rows[i].code, .text = "the reason" };
		json_t *answer = webhook_deny(object, &why);
		const json_t *response = json_object_get(answer, "response");
		const json_t *status = json_object_get(response, "status");
		assert_true(json_is_false(json_object_get(response, "allowed")));
		assert_string_equal(json_string_value(json_object_get(response, "uid")), "u");
		assert_string_equal(json_string_value(json_object_get(status, "message")),
				    "the reason");
		assert_int_equal(json_integer_value(json_object_get(status, "code")),
				 rows[i].status);
		json_decref(answer);
	}
	json_decref(object);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_amounts),
		cmocka_unit_test(test_several_gpus),
		cmocka_unit_test(test_which_gpus),
		cmocka_unit_test(test_a_part_of_each_size),
		cmocka_unit_test(test_what_a_claim_can_not_say),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_the_pod),
		cmocka_unit_test(test_several_containers),
		cmocka_unit_test(test_quota),
		cmocka_unit_test(test_deny),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
