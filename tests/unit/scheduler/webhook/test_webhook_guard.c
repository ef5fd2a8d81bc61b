/* What would get round the library, and what the operator wants done about it. */
#include "review.h"

#define GPU "'resources':{'limits':{'nvidia.com/gpu':'1'}}"
#define OURS "{'op':'add','path':'/spec/schedulerName','value':'allot-scheduler'}"
#define WITH_ENV(env) "{'spec':{'containers':[{'name':'a','env':[" env "]," GPU "}]}}"
#define REMOVED(path) "{'op':'remove','path':'/spec/" path "'}"
#define NO_GPU(path) \
	"{'op':'add','path':'" path "','value':{'name':'NVIDIA_VISIBLE_DEVICES','value':'none'}}"

static void test_variables(void **state)
{
	static const char *const names[] = { "LD_PRELOAD", "LD_LIBRARY_PATH",
					     "NVIDIA_VISIBLE_DEVICES", "CUDA_DISABLE_CONTROL" };
	for (size_t i = 0; i < 4; i++) {
		struct webhook_terms terms = default_terms;
		char pod[300], text[100];
		snprintf(pod, sizeof(pod), WITH_ENV("{'name':'X'},{'name':'%s','value':'true'}"),
			 names[i]);
		snprintf(text, sizeof(text),
			 "container a: environment variable %s can bypass the limits", names[i]);
		assert_patch(&terms, pod, "[" OURS "]", NULL);
		terms.environment = GUARD_WARN;
		assert_patch(&terms, pod, "[" OURS "]", text);
		terms.environment = GUARD_REWRITE;
		assert_patch(&terms, pod, "[" REMOVED("containers/0/env/1") "," OURS "]", text);
		terms.environment = GUARD_DENY;
		assert_denied(&terms, pod, 403, text);
	}
}

static void test_variables_that_do_no_harm(void **state)
{
	struct webhook_terms terms = default_terms;
	terms.environment = GUARD_DENY;
	assert_patch(&terms,
		     WITH_ENV("{'name':'CUDA_DISABLE_CONTROL','value':'false'},"
			      "{'name':'NVIDIA_VISIBLE_DEVICES','value':'none'},{'name':'ld_"
			      "preload'},{}"),
		     "[" OURS "]", NULL);
	/* What it will be is not known here. */
	assert_denied(&terms,
		      WITH_ENV("{'name':'CUDA_DISABLE_CONTROL','valueFrom':{'configMapKeyRef':{}}}"),
		      403, "CUDA_DISABLE_CONTROL");
	assert_patch(&terms,
		     "{'spec':{'containers':[{'name':'a','envFrom':[{'configMapRef':{}}]," GPU
		     "}]}}",
		     "[" OURS "]", "variables from envFrom are not checked");
}

/* A list loses several, from its end; and a container beside it that has no GPU says so, whatever its image says. */
static void test_several_are_taken_out(void **state)
{
	struct webhook_terms terms = default_terms;
	terms.environment = GUARD_REWRITE;
	json_t *response = respond_to(
		&terms,
		"{'spec':{'containers':[{'name':'a','env':[{'name':'LD_PRELOAD','value':'x'},{'"
		"name':'KEEP'},"
		"{'name':'LD_PRELOAD','value':'y'}]," GPU "},{'name':'b','env':["
		"{'name':'NVIDIA_VISIBLE_DEVICES','value':'all'}]},{'name':'c'}]}}",
		"default");
	json_t *patch = patch_of(response);
	assert_json(
		"patch", patch,
		"[" REMOVED("containers/0/env/2") "," REMOVED("containers/0/env/0") "," REMOVED("containers/1/env/0") "," NO_GPU(
			"/spec/containers/1/env/-") ","
						    "{'op':'add','path':'/spec/containers/2/"
						    "env','value':[]}," NO_GPU(
							    "/spec/containers/2/env/-") "," OURS
											"]");
	assert_int_equal(json_array_size(json_object_get(response, "warnings")), 3);
	json_decref(patch);
	json_decref(response);
}

#define VOLUMES(path) \
	"{'spec':{'volumes':[{'name':'keep','emptyDir':{}},{'name':'dev','hostPath':{'path':" \
	"'" path "'}}],'containers':[{'name':'a','volumeMounts':[{'name':'dev','mountPath':'/" \
	"x'},{'name':'keep'," \
	"'mountPath':'/y'}]," GPU \
	"},{'name':'b','volumeMounts':[{'name':'dev','mountPath':'/z'}]}]}}"

static void test_mounts(void **state)
{
	static const char *const wrong[] = { "/",
					     "/dev",
					     "/dev/",
					     "//dev",
					     "/./dev/.",
					     "/dev/nvidia0",
					     "/dev/nvidia-caps",
					     "/dev/nvidiactl",
					     "/dev/dri",
					     "/dev/dri/renderD128",
					     "/dev/char/195:0",
					     "/proc",
					     "/proc/driver/nvidia/capabilities" };
	static const char *const right[] = { "/data",    "/devices",        "/dev/shm",
					     "/var/dev", "/dev/infiniband", "/srv/dev/nvidia0",
					     "/process" };
	struct webhook_terms terms = default_terms;
	char pod[700];
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		snprintf(pod, sizeof(pod), VOLUMES("%s"), wrong[i]);
		terms.mounts = GUARD_ALLOW;
		assert_patch(&terms, pod, "[" OURS "]", NULL);
		terms.mounts = GUARD_WARN;
		assert_patch(&terms, pod, "[" OURS "]", "contains device files");
		terms.mounts = GUARD_REWRITE;
		assert_patch(&terms, pod,
			     "[" REMOVED("containers/0/volumeMounts/0") "," REMOVED(
				     "containers/1/volumeMounts/0") "," REMOVED("volumes/1") "," OURS
											     "]",
			     "contains device files: removed");
		terms.mounts = GUARD_DENY;
		assert_denied(&terms, pod, 403, "volume dev: the host path ");
	}
	for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++) {
		snprintf(pod, sizeof(pod), VOLUMES("%s"), right[i]);
		assert_patch(&terms, pod, "[" OURS "]", NULL);
	}
}

static void test_what_hides_the_library(void **state)
{
	static const char pod[] =
		"{'spec':{'containers':[{'name':'a','volumeMounts':[{'name':'v','mountPath':'/"
		"data'},"
		"{'name':'v','mountPath':'/etc//ld.so.preload'}]," GPU "},"
		"{'name':'b','volumeMounts':[{'name':'v','mountPath':'/etc/ld.so.preload'}]}]}}";
	struct webhook_terms terms = default_terms;
	terms.mounts = GUARD_REWRITE;
	assert_patch(&terms, pod, "[" REMOVED("containers/0/volumeMounts/1") "," OURS "]",
		     "container a: a mount at /etc/ld.so.preload replaces allot's library: removed");
	terms.mounts = GUARD_DENY;
	assert_denied(&terms, pod, 403, "a mount at /etc/ld.so.preload");
}

static void test_privileged(void **state)
{
	static const char pod[] =
		"{'spec':{'containers':[{'name':'a','securityContext':{'privileged':true}," GPU
		"}]}}";
	struct webhook_terms terms = default_terms;
	assert_denied(&terms, pod, 403,
		      "container a: securityContext.privileged is true "
		      "(the container requests a GPU)");
	terms.privileged = GUARD_REWRITE;
	assert_patch(&terms, pod,
		     "[{'op':'add','path':'/spec/containers/0/securityContext/"
		     "privileged','value':false}," OURS "]",
		     "securityContext.privileged is true (the container requests a GPU): removed");
	terms.privileged = GUARD_ALLOW;
	assert_patch(&terms, pod, "[" OURS "]", NULL);
}

/* Pods that ask for no GPU are looked at by option alone. */
static void test_others(void **state)
{
	static const char pod[] = "{'spec':{'volumes':[{'name':'d','hostPath':{'path':'/dev/"
				  "nvidia0'}}],'containers':[{'name':'a',"
				  "'env':[{'name':'NVIDIA_VISIBLE_DEVICES','value':'all'},{'name':'"
				  "LD_PRELOAD','value':'x'}],"
				  "'volumeMounts':[{'name':'d','mountPath':'/d'}]}]}}";
	struct webhook_terms terms = default_terms;
	terms.environment = terms.mounts = GUARD_REWRITE;
	assert_patch(&terms, pod, "[]", NULL);
	terms.guards_others = true;
	json_t *response = respond_to(&terms, pod, "default");
	json_t *patch = patch_of(response);
	assert_json(
		"patch", patch,
		"[" REMOVED("containers/0/env/0") "," NO_GPU("/spec/containers/0/env/-") "," REMOVED(
			"containers/0/volumeMounts/0") "," REMOVED("volumes/0") "]");
	json_decref(patch);
	json_decref(response);
	/* A pod of another scheduler that does ask keeps what its device plugin says. */
	assert_patch(&terms,
		     "{'spec':{'schedulerName':'volcano','containers':[{'name':'a'," GPU "}]}}",
		     "[]", NULL);
	assert_denied(&terms,
		      "{'spec':{'containers':[{'name':'a','securityContext':{'privileged':true}}]}}",
		      403,
		      "container a: securityContext.privileged is true: "
		      "a privileged container sees all GPUs");
	response = respond_to(
		&terms,
		"{'spec':{'containers':[{'name':'a','securityContext':{'privileged':true}}]}}",
		"kube-system");
	assert_true(json_is_true(json_object_get(response, "allowed")));
	json_decref(response);
}

static void test_images(void **state)
{
	static const char pod[] =
		"{'spec':{'containers':[{'name':'a','image':'registry.example/ml/torch:2'," GPU "},"
		"{'name':'b','image':'busybox'}]}}";
	struct webhook_terms terms = default_terms;
	terms.images = "other/*, registry.example/ml/*";
	assert_patch(&terms, pod, "[" OURS "]", NULL);
	terms.images = "other/*";
	assert_denied(
		&terms, pod, 403,
		"container a: image 'registry.example/ml/torch:2' is not allowed to use GPUs: must match "
		"other/*");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_variables),
		cmocka_unit_test(test_variables_that_do_no_harm),
		cmocka_unit_test(test_several_are_taken_out),
		cmocka_unit_test(test_mounts),
		cmocka_unit_test(test_what_hides_the_library),
		cmocka_unit_test(test_privileged),
		cmocka_unit_test(test_others),
		cmocka_unit_test(test_images),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
