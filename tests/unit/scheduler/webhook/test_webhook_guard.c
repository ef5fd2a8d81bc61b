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
	static const char *const names[] = { "LD_PRELOAD",
					     "LD_LIBRARY_PATH",
					     "LD_AUDIT",
					     "GLIBC_TUNABLES",
					     "ALLOT_SOCKET",
					     "ALLOT_UNKNOWN",
					     "CUDA_MPS_PIPE_DIRECTORY",
					     "NVIDIA_VISIBLE_DEVICES",
					     "CUDA_DISABLE_CONTROL" };
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
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
			      "preload'},{'name':'ALLOT_LOG'},{'name':'MY_LD_PRELOAD'},{}"),
		     "[" OURS "]", NULL);
	/* What it will be is not known here. */
	assert_denied(&terms,
		      WITH_ENV("{'name':'CUDA_DISABLE_CONTROL','valueFrom':{'configMapKeyRef':{}}}"),
		      403, "CUDA_DISABLE_CONTROL");
}

#define WITH_ENV_FROM(prefix) \
	"{'spec':{'containers':[{'name':'a','envFrom':[{'configMapRef':{}" prefix "}]," GPU "}]}}"

/* The variables of an envFrom are in another object. A prefix of their names can show that they do no harm. */
static void test_variables_of_other_objects(void **state)
{
	static const char *const wrong[] = { WITH_ENV_FROM(""), WITH_ENV_FROM(",'prefix':''"),
					     WITH_ENV_FROM(",'prefix':'L'"),
					     WITH_ENV_FROM(",'prefix':'LD_X'"),
					     WITH_ENV_FROM(",'prefix':'NVIDIA_'") };
	static const char *const right[] = { WITH_ENV_FROM(",'prefix':'APP_'"),
					     WITH_ENV_FROM(",'prefix':'NVIDIA_X'") };
	struct webhook_terms terms = default_terms;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		terms.environment = GUARD_ALLOW;
		assert_patch(&terms, wrong[i], "[" OURS "]", NULL);
		terms.environment = GUARD_WARN;
		assert_patch(&terms, wrong[i], "[" OURS "]",
			     "variables from envFrom are not checked");
		terms.environment = GUARD_REWRITE;
		assert_patch(&terms, wrong[i], "[" OURS "]",
			     "variables from envFrom are not checked");
		terms.environment = GUARD_DENY;
		assert_denied(
			&terms, wrong[i], 403,
			"container a: environment variables from envFrom can bypass the limits");
	}
	for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++)
		assert_patch(&terms, right[i], "[" OURS "]", NULL);
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
					     "/dev/infiniband",
					     "/proc",
					     "/proc/1/root",
					     "/proc/driver/nvidia/capabilities",
					     "/sys",
					     "/run",
					     "/run/allot",
					     "/var",
					     "/var/run",
					     "/var/lib",
					     "/var/lib/allot",
					     "/var/lib/kubelet/device-plugins",
					     "/etc",
					     "/etc/cdi",
					     "/data/../dev",
					     "/dev/shm/../nvidia0",
					     "/..",
					     "/a/../.." };
	static const char *const right[] = { "/data",        "/devices",         "/dev/shm",
					     "/dev/shm/x",   "/var/dev",         "/var/log",
					     "/process",     "/srv/dev/nvidia0", "/etc/ssl",
					     "/dev/../data", "/opt/..." };
	struct webhook_terms terms = default_terms;
	char pod[700];
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		snprintf(pod, sizeof(pod), VOLUMES("%s"), wrong[i]);
		terms.mounts = GUARD_ALLOW;
		assert_patch(&terms, pod, "[" OURS "]", NULL);
		terms.mounts = GUARD_WARN;
		assert_patch(&terms, pod, "[" OURS "]", "a pod can bypass the limits");
		terms.mounts = GUARD_REWRITE;
		assert_patch(&terms, pod,
			     "[" REMOVED("containers/0/volumeMounts/0") "," REMOVED(
				     "containers/1/volumeMounts/0") "," REMOVED("volumes/1") "," OURS
											     "]",
			     "a pod can bypass the limits: removed");
		terms.mounts = GUARD_DENY;
		assert_denied(&terms, pod, 403, "volume dev: by the host path ");
	}
	for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++) {
		snprintf(pod, sizeof(pod), VOLUMES("%s"), right[i]);
		assert_patch(&terms, pod, "[" OURS "]", NULL);
	}
	/* A path that is too long to be compared may be any. */
	char path[300];
	memset(path, 'a', sizeof(path));
	path[0] = '/';
	path[sizeof(path) - 1] = '\0';
	snprintf(pod, sizeof(pod), VOLUMES("%s/../dev"), path);
	assert_denied(&terms, pod, 403, "volume dev: by the host path ");
}

#define MOUNTED(path, gpu) \
	"{'spec':{'containers':[{'name':'a','volumeMounts':[{'name':'v','mountPath':'/data'},{'" \
	"name':'v','mountPath':'" path "'}]" gpu "},{'name':'b'," GPU "}]}}"

/* Mounts over the library's files, and those by which NVIDIA's toolkit gives GPUs. */
static void test_mounts_in_containers(void **state)
{
	static const char *const wrong[] = {
		MOUNTED("/etc//ld.so.preload", "," GPU),
		MOUNTED("/etc/../etc/ld.so.preload", "," GPU),
		MOUNTED("/var/run/allot/tenant", "," GPU),
		MOUNTED("/run/allot", "," GPU),
		MOUNTED("/var/run/nvidia-container-devices/all", "," GPU),
		MOUNTED("/var/run/nvidia-container-devices/all", ""),
	};
	static const char *const right[] = { MOUNTED("/etc/ld.so.preload", ""),
					     MOUNTED("/etc", "," GPU), MOUNTED("/run", "," GPU) };
	struct webhook_terms terms = default_terms;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		terms.mounts = GUARD_REWRITE;
		assert_patch(&terms, wrong[i],
			     "[" REMOVED("containers/0/volumeMounts/1") "," OURS "]",
			     "container a: by a mount at /");
		terms.mounts = GUARD_DENY;
		assert_denied(&terms, wrong[i], 403,
			      "a pod can bypass the limits: remove that mount");
	}
	for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++)
		assert_patch(&terms, right[i], "[" OURS "]", NULL);
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

#define WITH_CAPABILITIES(list) \
	"{'spec':{'containers':[{'name':'a','securityContext':{'capabilities':{'add':[" list \
	"]}}," GPU "}]}}"

static void test_capabilities(void **state)
{
	static const char *const wrong[] = { "SYS_ADMIN", "CAP_SYS_ADMIN", "ALL",
					     "BPF",       "sys_module",    "DAC_READ_SEARCH" };
	struct webhook_terms terms = default_terms;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		char pod[300], text[100];
		snprintf(pod, sizeof(pod), WITH_CAPABILITIES("'IPC_LOCK','%s'"), wrong[i]);
		snprintf(text, sizeof(text), "container a: capability %s reaches the node",
			 wrong[i]);
		terms.privileged = GUARD_DENY;
		assert_denied(&terms, pod, 403, text);
		terms.privileged = GUARD_REWRITE;
		assert_patch(&terms, pod,
			     "[" REMOVED("containers/0/securityContext/capabilities/add/1") "," OURS
											    "]",
			     text);
	}
	terms.privileged = GUARD_DENY;
	assert_patch(&terms, WITH_CAPABILITIES("'IPC_LOCK','CAP_SYS_PTRACE','net_raw'"),
		     "[" OURS "]", NULL);
}

static void test_namespaces_of_the_host(void **state)
{
	static const char pod[] = "{'spec':{'hostPID':true,'hostIPC':false,'hostNetwork':true,"
				  "'containers':[{'name':'a'," GPU "}]}}";
	struct webhook_terms terms = default_terms;
	assert_denied(&terms, pod, 403, "spec.hostPID: the pod reaches processes of others");
	terms.privileged = GUARD_REWRITE;
	assert_patch(&terms, pod, "[{'op':'add','path':'/spec/hostPID','value':false}," OURS "]",
		     "spec.hostPID");
	terms.privileged = GUARD_ALLOW;
	assert_patch(&terms, pod, "[" OURS "]", NULL);
}

#define DEBUGGED(gpu, more) \
	"{'spec':{'schedulerName':'allot-scheduler','containers':[{'name':'a'" gpu "}]" more "}}"
#define EPHEMERAL(list) ",'ephemeralContainers':[" list "]"

static void assert_ephemeral(const struct webhook_terms *terms, const char *pod,
			     const char *expected, const char *denial)
{
	json_t *response = respond_to_ephemeral(terms,
						DEBUGGED("," GPU, EPHEMERAL("{'name':'old'}")), pod);
	const char *message = json_string_value(
		json_object_get(json_object_get(response, "status"), "message"));
	json_t *patch = patch_of(response);
	assert_int_equal(json_is_true(json_object_get(response, "allowed")), !denial);
	assert_true(!denial || strstr(message, denial));
	assert_json(pod, patch, denial ? "[]" : expected);
	json_decref(patch);
	json_decref(response);
}

/* kubectl debug: the container that is new is checked, if the pod has GPUs. */
static void test_ephemeral_containers(void **state)
{
	static const char privileged[] = "{'name':'new','securityContext':{'privileged':true}}";
	struct webhook_terms terms = default_terms;
	char pod[500];
	snprintf(pod, sizeof(pod), DEBUGGED("," GPU, EPHEMERAL("%s")), privileged);
	assert_ephemeral(&terms, pod, NULL, "container new: securityContext.privileged is true");
	snprintf(pod, sizeof(pod), DEBUGGED("", EPHEMERAL("%s")), privileged);
	assert_ephemeral(&terms, pod, "[]", NULL);
	terms.guards_others = true;
	assert_ephemeral(&terms, pod, NULL, "container new: securityContext.privileged is true");
	terms.guards_others = false;
	/* The webhook has made claims of this pod's limits. */
	snprintf(pod, sizeof(pod),
		 DEBUGGED("",
			  ",'resourceClaims':[{'name':'a','resourceClaimTemplateName':'allot-1'}]" EPHEMERAL(
				  "%s")),
		 privileged);
	assert_ephemeral(&terms, pod, NULL, "container new: securityContext.privileged is true");
	/* An old container is left alone: it cannot change. */
	static const char old[] = DEBUGGED("," GPU, EPHEMERAL("{'name':'old','securityContext':{"
							      "'privileged':true}},{'name':'new'}"));
	assert_ephemeral(&terms, old, "[]", NULL);
	terms.environment = GUARD_DENY;
	assert_ephemeral(&terms, old,
			 "[{'op':'add','path':'/spec/ephemeralContainers/1/env','value':[]}," NO_GPU(
				 "/spec/ephemeralContainers/1/env/-") "]",
			 NULL);
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
		cmocka_unit_test(test_variables_of_other_objects),
		cmocka_unit_test(test_several_are_taken_out),
		cmocka_unit_test(test_mounts),
		cmocka_unit_test(test_mounts_in_containers),
		cmocka_unit_test(test_privileged),
		cmocka_unit_test(test_capabilities),
		cmocka_unit_test(test_namespaces_of_the_host),
		cmocka_unit_test(test_ephemeral_containers),
		cmocka_unit_test(test_others),
		cmocka_unit_test(test_images),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
