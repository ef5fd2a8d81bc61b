/* Pods, and what becomes of them. */
#include "review.h"

#include <errno.h>

/* One container, whose limits are that. */
#define POD(limits) "{'spec':{'containers':[{'name':'main','resources':{'limits':{" limits "}}}]}}"
#define ADD(path, value) "{'op':'add','path':'" path "','value':" value "}"
#define OURS ADD("/spec/schedulerName", "'allot-scheduler'")
#define RESOURCES "/spec/containers/0/resources/"
#define NO_REQUESTS ADD(RESOURCES "requests", "{}")
#define PUT(name, value) \
	ADD(RESOURCES "limits/" name, value) "," ADD(RESOURCES "requests/" name, value)
/* Where there are no requests yet. */
#define PUT_FIRST(name, value) \
	ADD(RESOURCES "limits/" name, value) \
	"," NO_REQUESTS "," ADD(RESOURCES "requests/" name, value)

/* What schedulers and daemons write is taken off, of pods without a GPU and of those that are let alone too. */
static void test_protocol_annotations(void **state)
{
	static const char *const names[] = {
		"hami.io~1vgpu-node",
		"hami.io~1vgpu-time",
		"hami.io~1bind-time",
		"hami.io~1bind-phase",
		"hami.io~1vgpu-devices-to-allocate",
		"hami.io~1vgpu-devices-allocated",
		"allot.dev~1borrowed",
		"allot.dev~1room-since",
		"tencent.com~1predicate-time",
		"tencent.com~1predicate-node",
		"tencent.com~1gpu-assigned",
		"tencent.com~1predicate-gpu-idx-0",
		"tencent.com~1predicate-gpu-idx-17",
	};
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		char pod[600], patch[300], name[80];
		snprintf(name, sizeof(name), "%s", names[i]);
		char *slash = strchr(name, '~');
		*slash = '/';
		memmove(slash + 1, slash + 2, strlen(slash + 2) + 1);
		snprintf(pod, sizeof(pod),
			 "{'metadata':{'labels':{'%s':'ignore'},'annotations':{'%s':'x','mine':'y'}"
			 "},"
			 "'spec':{'containers':[{'name':'main'}]}}",
			 i % 2 ? "hami.io/webhook" : "of", name);
		snprintf(patch, sizeof(patch),
			 "[{'op':'remove','path':'/metadata/annotations/%s'}]", names[i]);
		assert_patch(&default_terms, pod, patch,
			     "only allot-scheduler and allotd may write it");
	}
	assert_patch(&default_terms,
		     "{'metadata':{'annotations':{'allot.dev/memory':'1Gi','mine':'y'}},"
		     "'spec':{'containers':[{'name':'main'}]}}",
		     "[]", NULL);
}

static void test_asks(void **state)
{
	static const struct {
		const char *pod, *patch, *warning;
	} rows[] = {
		/* No GPU: not ours. */
		{ POD(""), "[]", NULL },
		{ POD("'cpu':'2','memory':'1Gi'"), "[]", NULL },
		{ POD("'nvidia.com/gpu':'0'"), "[]", NULL },
		{ POD("'nvidia.com/priority':'0'"), "[]", NULL },
		/* HAMi's vocabulary. */
		{ POD("'nvidia.com/gpu':'1'"), "[" OURS "]", NULL },
		{ POD("'nvidia.com/gpu':2"), "[" OURS "]", NULL },
		{ POD("'nvidia.com/gpumem':'3000'"),
		  "[" PUT_FIRST("nvidia.com~1gpu", "'1'") "," OURS "]", NULL },
		{ POD("'nvidia.com/gpumem-percentage':'50'"),
		  "[" PUT_FIRST("nvidia.com~1gpu", "'1'") "," OURS "]", NULL },
		{ POD("'nvidia.com/gpucores':'30'"),
		  "[" PUT_FIRST("nvidia.com~1gpu", "'1'") "," OURS "]", NULL },
		{ POD("'nvidia.com/gpu':'1','nvidia.com/gpumem':'3000','nvidia.com/"
		      "gpumem-percentage':'5'"),
		  "[" OURS "]", "nvidia.com/gpumem-percentage is ignored" },
		{ POD("'nvidia.com/gpu':'1','nvidia.com/gpumem':'8Gi'"),
		  "[" PUT_FIRST("nvidia.com~1gpumem", "'8192'") "," OURS "]",
		  "nvidia.com/gpumem: 8589934592 is more than 1048575, so it is read as bytes and replaced by 8192 (units of 1 MiB)" },
		{ POD("'nvidia.com/gpu':'1','nvidia.com/gpumem':'2k'"), "[" OURS "]", NULL },
		/* By requests alone: Kubernetes itself judges that. */
		{ "{'spec':{'containers':[{'name':'a','resources':{'requests':{'nvidia.com/"
		  "gpu':'1'}}}]}}",
		  "[" OURS "]", NULL },
		/* gpu-manager's. */
		{ POD("'tencent.com/vcuda-core':'30','tencent.com/vcuda-memory':'32'"),
		  "[" OURS "]", NULL },
		{ POD("'tencent.com/vcuda-core':'200'"), "[" OURS "]", NULL },
		{ POD("'tencent.com/vcuda-core':'20','tencent.com/vcuda-memory':'8Gi'"),
		  "[" PUT_FIRST("tencent.com~1vcuda-memory", "'32'") "," OURS "]",
		  "tencent.com/vcuda-memory: 8589934592 is more than 1000000, so it is read as bytes and replaced by 32 (units of 256 MiB)" },
		{ POD("'tencent.com/vcuda-core':'20','tencent.com/vcuda-memory':'257Mi'"),
		  "[" PUT_FIRST("tencent.com~1vcuda-memory", "'2'") "," OURS "]",
		  "replaced by 2 (units of 256 MiB)" },
		{ "{'metadata':{'annotations':{'allot.dev/"
		  "cards':'2'}},'spec':{'containers':[{'name':'a',"
		  "'resources':{'limits':{'tencent.com/vcuda-core':'150','tencent.com/"
		  "vcuda-memory':'9'}}}]}}",
		  "[" OURS "]", NULL },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_patch(&default_terms, rows[i].pod, rows[i].patch, rows[i].warning);
}

/* Where limits were copied to requests, as the API server does before it asks, both are changed. */
static void test_requests_stay_equal(void **state)
{
	assert_patch(
		&default_terms,
		"{'spec':{'containers':[{'name':'a','resources':{"
		"'limits':{'tencent.com/vcuda-core':'20','tencent.com/vcuda-memory':'8Gi'},"
		"'requests':{'tencent.com/vcuda-core':'20','tencent.com/vcuda-memory':'8Gi'}}}]}}",
		"[" PUT("tencent.com~1vcuda-memory", "'32'") "," OURS "]", "read as bytes");
}

static void test_wrong_asks(void **state)
{
	static const struct {
		const char *limits, *text;
		int code;
	} rows[] = {
		{ "'nvidia.com/gpu':'many'",
		  "container main: nvidia.com/gpu: 'many' is not an amount: must be a whole number of "
		  "GPUs",
		  422 },
		{ "'nvidia.com/gpu':'-1'", "nvidia.com/gpu: '-1': must be a whole number of GPUs",
		  422 },
		{ "'nvidia.com/gpu':'1.5'", "nvidia.com/gpu: '1.5' is not a whole number", 422 },
		{ "'nvidia.com/gpu':'500m'", "nvidia.com/gpu: '500m' is not a whole number", 422 },
		{ "'nvidia.com/gpu':'99999999999999999999'", "is too large or has too many digits",
		  422 },
		{ "'nvidia.com/gpu':'2000'", "must be a whole number of GPUs up to 1024", 422 },
		{ "'nvidia.com/gpu':{}", "must be an amount", 422 },
		{ "'nvidia.com/gpu':true", "must be an amount", 422 },
		{ "'nvidia.com/gpumem':'-3'",
		  "nvidia.com/gpumem: '-3': must be a whole number of MiB", 422 },
		{ "'nvidia.com/gpu':'1','nvidia.com/gpumem':'0'", "nvidia.com/gpumem: '0': must be",
		  422 },
		{ "'nvidia.com/gpumem':'8GiB'", "'8GiB' is not an amount", 422 },
		{ "'nvidia.com/gpumem':'2Ei'", "bytes: must be a whole number of MiB", 422 },
		{ "'nvidia.com/gpumem-percentage':'0'",
		  "must be 1 to 100, percent of a GPU's memory", 422 },
		{ "'nvidia.com/gpumem-percentage':'101'", "'101': must be 1 to 100", 422 },
		{ "'nvidia.com/gpucores':'101'", "nvidia.com/gpucores: '101': must be 0 to 100",
		  422 },
		{ "'nvidia.com/gpu':'1','nvidia.com/priority':'2'",
		  "nvidia.com/priority: '2': must be 0 (high)", 422 },
		{ "'nvidia.com/gpu':'0','nvidia.com/gpumem':'1000'",
		  "nvidia.com/gpu: '0': must be 1 or more", 422 },
		{ "'tencent.com/vcuda-core':'30'", "a part of a GPU needs tencent.com/vcuda-memory",
		  422 },
		{ "'tencent.com/vcuda-core':'130','tencent.com/vcuda-memory':'9'",
		  "'130': must be hundredths", 422 },
		{ "'tencent.com/vcuda-core':'9000'", "'9000': must be hundredths", 422 },
		{ "'tencent.com/vcuda-memory':'32'",
		  "tencent.com/vcuda-memory is requested without tencent.com/vcuda-core", 422 },
		{ "'tencent.com/vcuda-core':'3','tencent.com/vcuda-memory':'1000001'",
		  "must be units of 256 MiB", 422 },
		{ "'tencent.com/vcuda-core':'3','tencent.com/vcuda-memory':'8Pi'",
		  "bytes: must be units of 256 MiB", 422 },
		{ "'nvidia.com/gpu':'1','tencent.com/vcuda-core':'100'",
		  "requests both tencent.com/vcuda-core and nvidia.com/gpu: use resources of one "
		  "kind only",
		  422 },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char pod[512];
		snprintf(pod, sizeof(pod), POD("%s"), rows[i].limits);
		assert_denied(&default_terms, pod, rows[i].code, rows[i].text);
	}
}

static void test_init_containers_and_others(void **state)
{
	assert_patch(
		&default_terms,
		"{'spec':{'initContainers':[{'name':'i','resources':{'limits':{'nvidia.com/"
		"gpumem':'100'}}}],"
		"'containers':[{'name':'a'},{'name':'b','resources':{'limits':{'nvidia.com/"
		"gpucores':'5'}}}]}}",
		"[" ADD("/spec/initContainers/0/resources/limits/nvidia.com~1gpu", "'1'") "," ADD(
			"/spec/initContainers/0/resources/requests",
			"{}") "," ADD("/spec/initContainers/0/resources/requests/nvidia.com~1gpu",
				      "'1'") "," ADD("/spec/containers/1/resources/limits/"
						     "nvidia.com~1gpu",
						     "'1'") "," ADD("/spec/containers/1/resources/"
								    "requests",
								    "{}") "," ADD("/spec/"
										  "containers/1/"
										  "resources/"
										  "requests/"
										  "nvidia.com~1gpu",
										  "'1'") "," OURS
											 "]",
		NULL);
	assert_denied(&default_terms,
		      "{'spec':{'initContainers':[{'name':'i','resources':{'limits':{'nvidia.com/"
		      "gpu':'x'}}}],"
		      "'containers':[{'name':'a'}]}}",
		      422, "container i: nvidia.com/gpu");
}

static void test_priority(void **state)
{
	static const char env[] = ADD("/spec/containers/0/env", "[]");
	char expected[1024];
	snprintf(expected, sizeof(expected), "[%s,%s," OURS "]", env,
		 ADD("/spec/containers/0/env/-", "{'name':'CUDA_TASK_PRIORITY','value':'0'}"));
	assert_patch(&default_terms, POD("'nvidia.com/gpu':'1','nvidia.com/priority':'0'"),
		     expected, NULL);
	/* What stood there is another's idea of it. */
	assert_patch(&default_terms,
		     "{'spec':{'containers':[{'name':'a','env':[{'name':'CUDA_TASK_PRIORITY','"
		     "value':'0'},{'name':'B'}],"
		     "'resources':{'limits':{'nvidia.com/gpu':'1','nvidia.com/priority':'1'}}}]}}",
		     "[{'op':'remove','path':'/spec/containers/0/env/0'}," ADD(
			     "/spec/containers/0/env/-",
			     "{'name':'CUDA_TASK_PRIORITY','value':'1'}") "," OURS "]",
		     NULL);
}

static void test_defaults(void **state)
{
	struct webhook_terms terms = default_terms;
	terms.default_gpus = 2;
	terms.default_cores = 25;
	terms.default_memory_bytes = (UINT64_C(5) << 30) + 1;
	terms.runtime_class = "nvidia";
#define CLASS ADD("/spec/runtimeClassName", "'nvidia'")
	assert_patch(&terms, POD("'nvidia.com/gpu':'1'"),
		     "[" PUT_FIRST("nvidia.com~1gpumem", "'5121'") "," PUT(
			     "nvidia.com~1gpucores", "'25'") "," CLASS "," OURS "]",
		     NULL);
	assert_patch(&terms, POD("'nvidia.com/gpumem-percentage':'10','nvidia.com/gpucores':'0'"),
		     "[" PUT_FIRST("nvidia.com~1gpu", "'2'") "," CLASS "," OURS "]", NULL);
	assert_patch(&terms, POD("'tencent.com/vcuda-memory':'4'"),
		     "[" PUT_FIRST("tencent.com~1vcuda-core", "'25'") "," CLASS "," OURS "]", NULL);
	assert_patch(&terms, POD("'tencent.com/vcuda-core':'40'"),
		     "[" PUT_FIRST("tencent.com~1vcuda-memory", "'21'") "," CLASS "," OURS "]",
		     NULL);
	assert_patch(&terms, POD("'tencent.com/vcuda-core':'100'"), "[" CLASS "," OURS "]", NULL);
	assert_patch(
		&terms,
		"{'spec':{'runtimeClassName':'own','containers':[{'name':'a','resources':{'limits':"
		"{'tencent.com/vcuda-core':'100'}}}]}}",
		"[" OURS "]", NULL);
#undef CLASS
}

#define OF_CLASS(class) \
	"{'spec':{'runtimeClassName':'" class "','containers':[{'name':'a','resources':{'limits':{'nvidia.com/gpu':'1'}}}]}}"

static void test_sandboxes(void **state)
{
	struct webhook_terms terms = default_terms;

	assert_patch(&terms, OF_CLASS("gvisor"), "[" OURS "]",
		     "runtimeClassName gvisor: allot cannot limit GPUs in gVisor");
	assert_patch(&terms, OF_CLASS("runsc"), "[" OURS "]", "use a RuntimeClass of runc");
	assert_patch(&terms, OF_CLASS("kata-qemu-nvidia-gpu"), "[" OURS "]",
		     "allot cannot limit GPUs in Kata Containers");
	assert_patch(&terms, OF_CLASS("nvidia"), "[" OURS "]", NULL);
	assert_patch(&terms, OF_CLASS("my-kata"), "[" OURS "]", NULL);
	assert_patch(&terms, "{'spec':{'runtimeClassName':'gvisor','containers':[{'name':'a'}]}}",
		     "[]", NULL);
	/* The class that the webhook itself gives to the pod. */
	terms.runtime_class = "kata";
	assert_patch(&terms, POD("'nvidia.com/gpu':'1'"),
		     "[" ADD("/spec/runtimeClassName", "'kata'") "," OURS "]",
		     "runtimeClassName kata: allot cannot limit GPUs");
	assert_patch(&terms, OF_CLASS("nvidia"), "[" OURS "]", NULL);
}

#define NAMED(scheduler) \
	"{'spec':{'schedulerName':'" scheduler \
	"','containers':[{'name':'a','resources':{'limits':{'nvidia.com/gpu':'1'}}}]}}"

static void test_schedulers(void **state)
{
	struct webhook_terms forced = default_terms;
	forced.is_forced = true;
	assert_patch(&default_terms, NAMED("default-scheduler"), "[" OURS "]", NULL);
	assert_patch(&default_terms, NAMED("allot-scheduler"), "[]", NULL);
	assert_patch(&default_terms, NAMED("volcano"), "[]", NULL);
	assert_patch(&forced, NAMED("volcano"), "[" OURS "]",
		     "schedulerName volcano: replaced by allot-scheduler");
	/* A pod without GPUs keeps its scheduler, and gets no warning that it was replaced. */
	assert_patch(&forced, "{'spec':{'schedulerName':'volcano','containers':[{'name':'a'}]}}",
		     "[]", NULL);
	/* What another scheduler's pod asks for is not ours to judge. */
	assert_patch(&default_terms,
		     "{'spec':{'schedulerName':'volcano','containers':[{'name':'a','resources':{'"
		     "limits':"
		     "{'nvidia.com/gpucores':'400'}}}]}}",
		     "[]", NULL);
	assert_denied(&forced,
		      "{'spec':{'schedulerName':'volcano','containers':[{'name':'a','resources':{'"
		      "limits':"
		      "{'nvidia.com/gpucores':'400'}}}]}}",
		      422, "must be 0 to 100");
}

static void test_what_hami_denies(void **state)
{
	assert_denied(&default_terms, "{'spec':{'containers':[]}}", 403, "pod has no containers");
	assert_denied(&default_terms, "{'spec':{}}", 403, "pod has no containers");
	assert_denied(&default_terms, "{}", 403, "pod has no containers");
	assert_denied(&default_terms,
		      "{'spec':{'nodeName':'n1','containers':[{'name':'a','resources':{'limits':"
		      "{'nvidia.com/gpu':'1'}}}]}}",
		      403, "pod has node assigned: n1");
	assert_patch(&default_terms, "{'spec':{'nodeName':'n1','containers':[{'name':'a'}]}}", "[]",
		     NULL);
	assert_denied(&default_terms,
		      "{'spec':{'containers':[{'name':'a','securityContext':{'privileged':true},"
		      "'resources':{'limits':{'nvidia.com/gpu':'1'}}}]}}",
		      403,
		      "container a: securityContext.privileged is true "
		      "(the container requests a GPU)");
	assert_patch(&default_terms,
		     "{'spec':{'containers':[{'name':'a','securityContext':{'privileged':true}},"
		     "{'name':'b','resources':{'limits':{'nvidia.com/gpu':'1'}}}]}}",
		     "[" OURS "]", NULL);
	assert_denied(&default_terms, "{'spec':{'containers':{'a':1}}}", 422, "must be a list");
	assert_denied(&default_terms, "{'spec':{'containers':['a']}}", 422, "must be an object");
	assert_denied(&default_terms,
		      "{'spec':{'containers':[{'name':'a','env':'x','resources':{'limits':"
		      "{'nvidia.com/gpu':'1','nvidia.com/priority':'1'}}}]}}",
		      422, "/spec/containers/0/env: must be a list");
	assert_denied(&default_terms,
		      "{'spec':{'containers':[{'name':'a','resources':{'requests':'x','limits':"
		      "{'nvidia.com/gpumem':'1'}}}]}}",
		      422, "/spec/containers/0/resources/requests: must be an object");
}

static void test_who_is_let_alone(void **state)
{
	static const char bad[] = "'spec':{'containers':[{'name':'a','resources':{'limits':"
				  "{'nvidia.com/gpu':'x'}}}]}}";
	static const char *const labels[] = { "hami.io/webhook", "allot.dev/webhook" };
	struct webhook_terms strict = default_terms;
	char pod[512];
	strict.has_opt_out = false;
	for (size_t i = 0; i < 2; i++) {
		snprintf(pod, sizeof(pod), "{'metadata':{'labels':{'%s':'ignore'}},%s", labels[i],
			 bad);
		assert_patch(&default_terms, pod, "[]", NULL);
		assert_denied(&strict, pod, 422, "nvidia.com/gpu");
		snprintf(pod, sizeof(pod), "{'metadata':{'labels':{'%s':'yes'}},%s", labels[i], bad);
		assert_denied(&default_terms, pod, 422, "nvidia.com/gpu");
	}
	strict.namespaces = "a , sys* , c";
	json_t *response = respond_to(&strict, pod, "system");
	assert_true(json_is_true(json_object_get(response, "allowed")));
	json_decref(response);
	response = respond_to(&strict, pod, "b");
	assert_true(json_is_false(json_object_get(response, "allowed")));
	json_decref(response);
}

static void test_both_amounts_are_required(void **state)
{
	struct webhook_terms terms = default_terms;
	terms.needs_both = true;
	assert_denied(&terms, POD("'nvidia.com/gpu':'1'"), 403,
		      "nvidia.com/gpumem (or nvidia.com/gpumem-percentage) must be requested too");
	assert_denied(&terms, POD("'nvidia.com/gpumem':'5'"), 403,
		      "nvidia.com/gpucores must be requested too");
	assert_denied(&terms, POD("'tencent.com/vcuda-core':'100'"), 403,
		      "this cluster requires both");
	assert_patch(&terms,
		     POD("'nvidia.com/gpu':'1','nvidia.com/gpumem':'5','nvidia.com/gpucores':'5'"),
		     "[" OURS "]", NULL);
}

static void test_estimates_are_refused(void **state)
{
#define NOTED(metadata, spec) \
	"{'metadata':{'annotations':{" metadata "}},'spec':{" spec \
	"'containers':[{'name':'a','resources':{'limits':{'nvidia.com/gpu':'1'}}}]}}"
	assert_denied(&default_terms, NOTED("'allot.dev/duration':'2h'", ""), 422,
		      "set activeDeadlineSeconds");
	assert_denied(&default_terms, NOTED("'allot.dev/concurrency':'8'", ""), 422,
		      "allot.dev/concurrency: is not used");
	assert_patch(&default_terms, NOTED("", "'activeDeadlineSeconds':60,"), "[" OURS "]", NULL);
}

static void test_workloads(void **state)
{
#define NODES ADD("/metadata/annotations/hami.io~1node-scheduler-policy", "'binpack'")
#define CARDS(policy) ADD("/metadata/annotations/hami.io~1gpu-scheduler-policy", "'" policy "'")
	assert_patch(&default_terms, NOTED("'allot.dev/workload':'training'", ""),
		     "[" CARDS("topology-aware,numa") "," OURS "]", NULL);
	assert_patch(&default_terms, NOTED("'allot.dev/workload':'inference'", ""),
		     "[" NODES "," CARDS("spread") "," OURS "]", NULL);
	/* What the pod says itself goes before. */
	assert_patch(&default_terms,
		     NOTED("'allot.dev/workload':'inference','hami.io/gpu-scheduler-policy':'mutex'",
			   ""),
		     "[" NODES "," OURS "]", NULL);
	assert_denied(&default_terms, NOTED("'allot.dev/workload':'play'", ""), 422,
		      "allot.dev/workload: 'play': must be training or inference");
	/* As a label, and without annotations. */
	assert_patch(&default_terms,
		     "{'metadata':{'labels':{'allot.dev/"
		     "workload':'training'}},'spec':{'containers':[{'name':"
		     "'a','resources':{'limits':{'nvidia.com/gpu':'1'}}}]}}",
		     "[" ADD("/metadata/annotations", "{}") "," CARDS("topology-aware,numa") "," OURS
											     "]",
		     NULL);
}

static bool quota_of(void *data, const char *name, struct webhook_quota *ret)
{
	*ret = *(const struct webhook_quota *)data;
	return !strcmp(name, "default");
}

static void test_quotas(void **state)
{
	struct webhook_quota quota = {
		.limits = { .has = { [QUOTA_MEMORY] = true, [QUOTA_CORES] = true },
			    .most = { [QUOTA_MEMORY] = 10000, [QUOTA_CORES] = 100 } },
		.used = { { [QUOTA_MEMORY] = 4000, [QUOTA_CORES] = 40 } }
	};
	struct webhook_terms terms = default_terms;
	terms.quota = quota_of;
	terms.data = &quota;
	assert_patch(
		&terms,
		POD("'nvidia.com/gpu':'2','nvidia.com/gpumem':'3000','nvidia.com/gpucores':'30'"),
		"[" OURS "]", NULL);
	assert_denied(&terms, POD("'nvidia.com/gpu':'2','nvidia.com/gpumem':'3001'"), 403,
		      "exceeding resource quota: namespace default: the pod asks for 6002 of "
		      "nvidia.com/gpumem, but only 6000 of 10000 are left");
	assert_denied(&terms, POD("'nvidia.com/gpu':'1','nvidia.com/gpucores':'61'"), 403,
		      "61 of nvidia.com/gpucores, but only 60 of 100 are left");
	/* A count alone is a whole GPU; how much memory that is, its node will tell. */
	assert_denied(&terms, POD("'nvidia.com/gpu':'1'"), 403,
		      "100 of nvidia.com/gpucores, but only 60 of 100 are left");
	assert_denied(&terms, POD("'tencent.com/vcuda-core':'10','tencent.com/vcuda-memory':'24'"),
		      403, "6144 of nvidia.com/gpumem, but only");
	/* Init containers have ended before the others begin; a sidecar has not. */
#define INIT(policy) \
	"{'spec':{'initContainers':[{'name':'i'," policy \
	"'resources':{'limits':{'nvidia.com/gpu':'1','nvidia.com/" \
	"gpumem':'4000'}}}],'containers':[{'name':'a'," \
	"'resources':{'limits':{'nvidia.com/gpu':'1','nvidia.com/gpumem':'4000'}}}]}}"
	assert_patch(&terms, INIT(""), "[" OURS "]", NULL);
	assert_denied(&terms, INIT("'restartPolicy':'Always',"), 403, "8000 of nvidia.com/gpumem");
	/* An init container runs beside the sidecars before it, but not beside those after it. */
#define C(name, mib, policy) \
	"{'name':'" name "'," policy "'resources':{'limits':{'nvidia.com/gpu':'1','nvidia.com/" \
	"gpumem':'" mib "'}}}"
#define SIDECAR "'restartPolicy':'Always',"
#define THREE(first, second) \
	"{'spec':{'initContainers':[" first "," second "],'containers':[" C("a", "1", "") "]}}"
	assert_patch(&terms, THREE(C("i", "4000", ""), C("s", "3000", SIDECAR)), "[" OURS "]", NULL);
	assert_denied(&terms, THREE(C("s", "3000", SIDECAR), C("i", "4000", "")), 403,
		      "7000 of nvidia.com/gpumem");
#undef THREE
#undef SIDECAR
#undef C
	quota.limits.has[QUOTA_GPUS] = true;
	quota.limits.most[QUOTA_GPUS] = 2;
	quota.used.of[QUOTA_GPUS] = 1;
	assert_denied(&terms, POD("'nvidia.com/gpu':'2','nvidia.com/gpumem':'1'"), 403,
		      "2 of nvidia.com/gpu, but only 1 of 2 are left");
	quota.limits.has[QUOTA_CORES] = false;
	assert_denied(&terms, POD("'tencent.com/vcuda-core':'200'"), 403,
		      "2 of nvidia.com/gpu, but only 1 of 2 are left");
	quota.used.of[QUOTA_MEMORY] = 20000;
	assert_denied(&terms, POD("'nvidia.com/gpu':'1','nvidia.com/gpumem':'1'"), 403,
		      "0 of 10000 are left");
	json_t *response = respond_to(&terms, POD("'nvidia.com/gpu':'1','nvidia.com/gpumem':'1'"),
				      "other");
	assert_true(json_is_true(json_object_get(response, "allowed")));
	json_decref(response);
}

static void test_what_is_no_review(void **state)
{
	static const char *const rows[] = {
		"{}",
		"[]",
		"{'apiVersion':'admission.k8s.io/v1beta1','request':{'uid':'u'}}",
		"{'apiVersion':'admission.k8s.io/v1'}",
		"{'apiVersion':'admission.k8s.io/v1','request':{}}",
		"{'apiVersion':'admission.k8s.io/v1','request':{'uid':7}}",
		"{'apiVersion':'admission.k8s.io/v1','request':{'uid':''}}",
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct error err = { 0 };
		json_t *review = json_of(rows[i]);
		assert_null(webhook_review(&default_terms, review, NULL, &err));
		assert_int_equal(err.code, EINVAL);
		json_decref(review);
	}
	assert_null(webhook_review(&default_terms, NULL, NULL, NULL));
}

/* What is not the creation of a pod is none of ours. */
static void test_what_is_not_for_us(void **state)
{
	static const char *const rows[] = {
		"'operation':'UPDATE','kind':{'kind':'Pod'}",
		"'operation':'CREATE','kind':{'kind':'Deployment'}",
		"'operation':'CREATE','kind':{'kind':'Pod'},'subResource':'binding'",
		"'operation':'DELETE','kind':{'kind':'Pod'},'object':null",
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[256];
		snprintf(text, sizeof(text),
			 "{'apiVersion':'admission.k8s.io/v1','request':{'uid':'u',%s}}", rows[i]);
		json_t *review = json_of(text);
		json_t *answer = webhook_review(&default_terms, review, NULL, NULL);
		assert_json(rows[i], json_object_get(answer, "response"),
			    "{'uid':'u','allowed':true}");
		json_decref(answer);
		json_decref(review);
	}
	json_t *review = json_of(
		"{'apiVersion':'admission.k8s.io/v1','request':{'uid':'u','operation':'CREATE',"
		"'kind':{'kind':'Pod'}}}");
	json_t *answer = webhook_review(&default_terms, review, NULL, NULL);
	assert_true(json_is_false(json_object_get(json_object_get(answer, "response"), "allowed")));
	json_decref(answer);
	json_decref(review);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_asks),
		cmocka_unit_test(test_protocol_annotations),
		cmocka_unit_test(test_requests_stay_equal),
		cmocka_unit_test(test_wrong_asks),
		cmocka_unit_test(test_init_containers_and_others),
		cmocka_unit_test(test_priority),
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_sandboxes),
		cmocka_unit_test(test_schedulers),
		cmocka_unit_test(test_what_hami_denies),
		cmocka_unit_test(test_who_is_let_alone),
		cmocka_unit_test(test_both_amounts_are_required),
		cmocka_unit_test(test_estimates_are_refused),
		cmocka_unit_test(test_workloads),
		cmocka_unit_test(test_quotas),
		cmocka_unit_test(test_what_is_no_review),
		cmocka_unit_test(test_what_is_not_for_us),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
