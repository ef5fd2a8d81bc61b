/* What allot explain says of pods with ResourceClaims. */
#include "../test.h"

#include "cli/explain/explain_claims.h"
#include "cli/explain/explain_text.h"

static json_t *json_of(const char *text)
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

#define DEVICE(name, memory, cores, more) \
	"{'name':'" name "','capacity':{'memory':{'value':'" memory \
	"','requestPolicy':{'default':'80Gi'}},'cores':{'value':'" cores "'}}" more "}"
#define SLICES(devices) \
	"{'items':[{'spec':{'nodeName':'n1','pool':{'name':'n1'},'devices':[" devices "]}}]}"
#define CLASSES \
	"{'gpu.allot.dev':{'spec':{'selectors':[{'cel':{'expression':'its driver is gpu.allot.dev'}}]}}}"
#define REQUEST(capacity) \
	"{'name':'gpu','exactly':{'deviceClassName':'gpu.allot.dev','capacity':{'requests':{" capacity \
	"}}}}"
#define CLAIM(requests) "{'gpu':{'spec':{'devices':{'requests':[" requests "]}}}}"
#define USED(memory, cores) \
	"{'items':[{'status':{'allocation':{'devices':{'results':[{'driver':'gpu.allot.dev','pool':'n1'," \
	"'device':'gpu-1','request':'gpu','consumedCapacity':{'memory':'" memory \
	"','cores':'" cores "'}}]}}}}]}"
#define POD(spec) \
	"{'metadata':{'namespace':'ns','name':'p'},'spec':{" spec "},'status':{'phase':'Pending'}}"
#define OF_CLAIM "'resourceClaims':[{'name':'gpu','resourceClaimName':'c'}]"
#define OF_TEMPLATE "'resourceClaims':[{'name':'gpu','resourceClaimTemplateName':'t'}]"
#define ON_NODE "'nodeName':'n1'," OF_CLAIM

struct row {
	const char *pod, *claims, *templates, *classes, *slices, *all, *events;
	const char *says; /* the first line, behind the pod's name */
};

static json_t *maybe(const char *text)
{
	return text ? json_of(text) : NULL;
}

static char *say(const struct row *row)
{
	struct explain_claims known = { .claims = maybe(row->claims),
					.templates = maybe(row->templates),
					.classes = maybe(row->classes),
					.slices = maybe(row->slices),
					.all = maybe(row->all),
					.events = maybe(row->events) };
	json_t *pod = json_of(row->pod), *e = explain_of_claims(pod, &known);
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	explain_text_write(e, out);
	fclose(out);
	json_decref(e);
	json_decref(pod);
	json_decref(known.claims);
	json_decref(known.templates);
	json_decref(known.classes);
	json_decref(known.slices);
	json_decref(known.all);
	json_decref(known.events);
	return text;
}

#define NEITHER \
	"each request of claim c alone fits a GPU. Together, or with its selectors and " \
	"constraints, or with the pod's other needs, they fit no node"

static const struct row rows[] = {
	{ .pod = POD(OF_TEMPLATE),
	  .templates = "{'t':false}",
	  .says = "there is no ResourceClaimTemplate t, from which the pod's claim is to be made" },
	{ .pod = POD(OF_TEMPLATE),
	  .templates = "{'t':true}",
	  .says = "the pod's claim gpu does not exist yet: kube-controller-manager makes it from the "
		  "ResourceClaimTemplate t" },
	{ .pod = POD(OF_CLAIM), .claims = "{'gpu':null}", .says = "there is no ResourceClaim c" },
	{ .pod = POD(OF_CLAIM),
	  .claims = CLAIM(REQUEST("")),
	  .classes = "{'gpu.allot.dev':null}",
	  .says = "claim c, request gpu: there is no DeviceClass gpu.allot.dev" },
	{ .pod = POD(OF_CLAIM),
	  .claims = CLAIM(REQUEST("")),
	  .classes = CLASSES,
	  .slices = "{'items':[]}",
	  .says = "claim c, request gpu: no node has published GPUs of gpu.allot.dev (kubectl get "
		  "resourceslices)" },
	/* What other claims have, and tenants of no claim, is not left. */
	{ .pod = POD(OF_CLAIM),
	  .claims = CLAIM(REQUEST("'memory':'40Gi','cores':'50'")),
	  .classes = CLASSES,
	  .slices = SLICES(DEVICE("gpu-1", "80Gi", "100", "")),
	  .all = USED("50Gi", "20"),
	  .says = "claim c, request gpu asks for 40.0 GiB and 50 %, and none of 1 GPU on 1 node has "
		  "that left: the nearest, gpu-1 of node n1, has 30.0 GiB and 80 %" },
	{ .pod = POD(OF_CLAIM),
	  .claims = CLAIM(REQUEST("'memory':'10Gi','cores':'50'")),
	  .classes = CLASSES,
	  .slices = SLICES(DEVICE("gpu-1", "80Gi", "40", "") "," DEVICE("gpu-2", "5Gi", "100", "")),
	  .says = "claim c, request gpu asks for 10.0 GiB and 50 %, and none of 2 GPUs on 1 node has "
		  "that left: the nearest, gpu-1 of node n1, has 80.0 GiB and 40 % (you may not read "
		  "what other claims use)" },
	/* Without memory all of a GPU is asked for. */
	{ .pod = POD(OF_CLAIM),
	  .claims = CLAIM(REQUEST("")),
	  .classes = CLASSES,
	  .slices = SLICES(DEVICE("gpu-1", "80Gi", "100", "")),
	  .all = USED("1Gi", "0"),
	  .says = "claim c, request gpu asks for 80.0 GiB, and none of 1 GPU on 1 node has that left: "
		  "the nearest, gpu-1 of node n1, has 79.0 GiB and 100 %" },
	{ .pod = POD(OF_CLAIM),
	  .claims = CLAIM(REQUEST("'memory':'1Gi'")),
	  .classes = CLASSES,
	  .slices = SLICES(
		  DEVICE("gpu-1", "80Gi", "100", ",'taints':[{'key':'gpu.allot.dev/cordoned'}]")),
	  .all = "{}",
	  .says = "claim c, request gpu: each of the 1 GPU that nodes have published is tainted "
		  "(gpu.allot.dev/cordoned)" },
	{ .pod = POD(OF_CLAIM),
	  .claims = CLAIM(REQUEST("'memory':'1Gi'")),
	  .classes = CLASSES,
	  .slices = SLICES(DEVICE("gpu-1", "80Gi", "100", "")),
	  .all = "{}",
	  .says = NEITHER },
	/* Alternatives: one is enough. */
	{ .pod = POD(OF_CLAIM),
	  .claims = CLAIM(
		  "{'name':'gpu','firstAvailable':[{'name':'a','deviceClassName':'gpu.allot.dev',"
		  "'capacity':{'requests':{'memory':'90Gi'}}},{'name':'b','deviceClassName':"
		  "'gpu.allot.dev','capacity':{'requests':{'memory':'9Gi'}}}]}"),
	  .classes = CLASSES,
	  .slices = SLICES(DEVICE("gpu-1", "80Gi", "100", "")),
	  .all = "{}",
	  .says = NEITHER },
	/* Another driver's devices are not known. */
	{ .pod = POD(OF_CLAIM),
	  .claims = CLAIM("{'name':'gpu','exactly':{'deviceClassName':'other.example.com'}}"),
	  .classes = "{'other.example.com':{}}",
	  .slices = SLICES(DEVICE("gpu-1", "1Gi", "1", "")),
	  .all = "{}",
	  .says = NEITHER },
	{ .pod = POD(OF_CLAIM),
	  .claims = "{'gpu':{'status':{'allocation':{'devices':{'results':[]},'nodeSelector':{"
		    "'nodeSelectorTerms':[{'matchFields':[{'key':'metadata.name','values':['n1']}]}]}}}}}",
	  .says = "claim c is allocated on node n1; something other than GPUs keeps the pod from "
		  "running" },
};

static void test_why(void **state)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *text = say(&rows[i]), wanted[1200];
		snprintf(wanted, sizeof(wanted), "ns/p waits: %s", rows[i].says);
		text[strcspn(text, "\n")] = '\0';
		assert_string_equal(text, wanted);
		free(text);
	}
}

static void test_on_a_node(void **state)
{
	const struct row has = {
		.pod = POD(ON_NODE),
		.claims =
			"{'gpu':{'status':{'allocation':{'devices':{'results':[{'driver':'gpu.allot.dev',"
			"'pool':'n1','device':'gpu-1','request':'gpu','consumedCapacity':{'memory':'2Gi',"
			"'cores':'30'}},{'driver':'other.example.com','pool':'n1','device':'x','request':"
			"'nic'}]}}}}}"
	};
	const struct row refused = {
		.pod = POD(ON_NODE),
		.events =
			"{'items':["
			"{'reason':'FailedPrepareDynamicResources','message':'older','lastTimestamp':"
			"'2026-11-20T10:00:02Z'},"
			"{'reason':'FailedPrepareDynamicResources','message':'no room','eventTime':"
			"'2026-11-20T10:00:01.000000Z','series':{'lastObservedTime':"
			"'2026-11-20T10:00:02.500000Z'}},"
			"{'reason':'Other','message':'newer','lastTimestamp':'2026-11-20T10:00:04Z'},"
			"{'reason':'FailedPrepareDynamicResources','message':'old','lastTimestamp':"
			"'2026-11-20T09:59:59Z'}]}"
	};
	char *text = say(&has);
	assert_string_equal(text,
			    "ns/p is on node n1\n"
			    "  claim c, request gpu has on gpu-1: 2.0 GiB, 30 % of the time\n");
	free(text);
	text = say(&refused);
	assert_non_null(strstr(
		text, "ns/p is on node n1, but waits: its node can't prepare its claims: no room\n"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_why),
					    cmocka_unit_test(test_on_a_node) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
