/* gpu-manager's vocabulary: whom a call is for, and where that can't be known. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "kube/gpu_manager/vcuda_choice.h"

#define MAX_PODS 4

static const struct vcuda_names names = { "x/core", "x/memory" };

/* A node's pods, as a test describes them. */
struct scene {
	struct kube_pod *pod[MAX_PODS];
	struct vcuda_query q;
	const char *claimed[4]; /* "POD/CONTAINER" */
};

static bool has_claim(void *data, const struct kube_pod *pod, size_t container)
{
	const struct scene *s = data;
	char name[64];
	snprintf(name, sizeof(name), "%s/%s", pod->name, pod->container[container]);
	for (size_t i = 0; i < sizeof(s->claimed) / sizeof(s->claimed[0]); i++)
		if (s->claimed[i] && !strcmp(s->claimed[i], name))
			return true;
	return false;
}

static int setup(void **state)
{
	static struct scene scene;
	scene = (struct scene){ .q = { .node = "n",
				       .names = &names,
				       .pod = (const struct kube_pod *const *)scene.pod,
				       .has_claim = has_claim,
				       .data = &scene } };
	*state = &scene;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;
	for (size_t i = 0; i < s->q.pod_count; i++)
		pod_free(s->pod[i]);
	return 0;
}

struct wants {
	unsigned cores, memory;
};

/* Made at second `second`; containers "init", "one" and "two" that ask for that. `more` goes into its annotations. */
static struct kube_pod *add_pod(struct scene *s, const char *name, unsigned second,
				const struct wants wants[3], const char *more)
{
	char text[4096];
	static const char *const container[] = { "init", "one", "two" };
	char part[3][200];
	for (int i = 0; i < 3; i++) {
		int n = snprintf(part[i], sizeof(part[i]),
				 "{\"name\":\"%s\",\"resources\":{\"limits\":{\"cpu\":\"1\"",
				 container[i]);
		if (wants[i].cores)
			n += snprintf(part[i] + n, sizeof(part[i]) - (size_t)n,
				      ",\"x/core\":\"%u\"", wants[i].cores);
		if (wants[i].memory)
			n += snprintf(part[i] + n, sizeof(part[i]) - (size_t)n,
				      ",\"x/memory\":\"%u\"", wants[i].memory);
		snprintf(part[i] + n, sizeof(part[i]) - (size_t)n, "}}}");
	}
	snprintf(text, sizeof(text),
		 "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\",\"uid\":\"%s\","
		 "\"resourceVersion\":\"1\",\"creationTimestamp\":\"2026-11-22T10:00:%02uZ\","
		 "\"annotations\":{%s}},\"spec\":{\"nodeName\":\"n\",\"initContainers\":[%s],"
		 "\"containers\":[%s,%s]},\"status\":{\"phase\":\"Pending\"}}",
		 name, name, second, more, part[0], part[1], part[2]);
	json_auto_t *object = json_loads(text, 0, NULL);
	assert_non_null(object);
	assert_int_equal(pod_read(object, &s->pod[s->q.pod_count], NULL), 0);
	return s->pod[s->q.pod_count++];
}

static struct kube_pod *add_simple(struct scene *s, const char *name, unsigned second,
				   unsigned cores, unsigned memory)
{
	const struct wants wants[3] = { [1] = { cores, memory } };
	return add_pod(s, name, second, wants, "");
}

static void chosen(struct scene *s, unsigned count, const char *pod, const char *container)
{
	struct vcuda_choice c;
	struct error err = { 0 };
	s->q.count = count;
	int r = vcuda_choose(&s->q, &c, &err);
	if (r < 0)
		fail_msg("%d: %s", r, err.text);
	assert_string_equal(c.pod->name, pod);
	assert_string_equal(c.pod->container[c.container], container);
	assert_int_equal(c.request.cores, count);
}

static void refused(struct scene *s, unsigned count, int code, const char *one, const char *other)
{
	struct vcuda_choice c;
	struct error err = { 0 };
	s->q.count = count;
	int r = vcuda_choose(&s->q, &c, &err);
	if (r != -code || !strstr(err.text, one) || !strstr(err.text, other))
		fail_msg("%d: %s", r, err.text);
}

static void test_containers_in_order(void **state)
{
	struct scene *s = *state;
	add_pod(s, "p", 0, (struct wants[]){ { 10, 1 }, { 20, 2 }, { 30, 3 } }, "");
	chosen(s, 10, "p", "init");
	/* The kubelet is not there yet. */
	refused(s, 20, EAGAIN, "on node n", "requests 20 x/core");
	s->claimed[0] = "p/init";
	chosen(s, 20, "p", "one");
	s->claimed[1] = "p/one";
	chosen(s, 30, "p", "two");
	s->claimed[2] = "p/two";
	refused(s, 30, EAGAIN, "on node n", "requests 30 x/core");
}

static void test_who_is_not_meant(void **state)
{
	struct scene *s = *state;
	add_simple(s, "started", 0, 10, 1)->is_started = true;
	add_simple(s, "ended", 0, 10, 1)->phase = POD_ENDED;
	add_simple(s, "ending", 0, 10, 1)->is_terminating = true;
	add_simple(s, "elsewhere", 0, 10, 1)->node = "m";
	refused(s, 10, EAGAIN, "on node n", "");
}

static void test_equals_by_age(void **state)
{
	struct scene *s = *state;
	add_simple(s, "c", 7, 10, 4);
	add_simple(s, "b", 5, 10, 4);
	add_simple(s, "a", 6, 10, 4);
	chosen(s, 10, "b", "one");
	s->claimed[0] = "b/one";
	chosen(s, 10, "a", "one");
}

/* A scheduler's time is finer; its choice of cards makes no difference. */
static void test_equals_by_when_they_were_bound(void **state)
{
#define BOUND(time, card) \
	"\"tencent.com/predicate-time\":\"" time "\",\"tencent.com/gpu-assigned\":\"false\"," \
	"\"tencent.com/predicate-gpu-idx-0\":\"" card "\""
	struct scene *s = *state;
	const struct wants wants[3] = { [1] = { 10, 4 } };
	add_pod(s, "a", 5, wants, BOUND("1700000000000000009", "0"));
	add_pod(s, "b", 5, wants, BOUND("1700000000000000008", "1"));
	chosen(s, 10, "b", "one");
}

static void test_memory_tells(void **state)
{
	struct scene *s = *state;
	bool has_unclaimed;
	struct error err = { 0 };
	add_simple(s, "a", 5, 10, 4);
	add_simple(s, "b", 6, 10, 8);
	/* The call for memory is still to come, and will be refused if this is wrong. */
	chosen(s, 10, "a", "one");
	s->q.has_open = true;
	s->q.open_units = 8;
	chosen(s, 10, "b", "one");
	s->q.open_units = 9;
	refused(s, 10, EAGAIN,
		"the kubelet asks for 10 x/core, and its previous call asked for 9 x/memory",
		"requests 10 x/core and 8 x/memory");
	s->q.count = 8;
	assert_int_equal(vcuda_check_memory(&s->q, &has_unclaimed, &err), 0);
	assert_true(has_unclaimed);
	s->claimed[0] = "b/one";
	assert_int_equal(vcuda_check_memory(&s->q, &has_unclaimed, &err), 0);
	assert_false(has_unclaimed);
	s->q.count = 9;
	assert_int_equal(vcuda_check_memory(&s->q, &has_unclaimed, &err), -EAGAIN);
	assert_non_null(strstr(err.text, "requests 9 x/memory"));
}

static void test_unclear(void **state)
{
	struct scene *s = *state;
	const struct wants wants[3] = { [1] = { 100, 4 } };
	/* Whether a call for memory will come is not known either. */
	add_simple(s, "whole", 5, 100, 0);
	add_simple(s, "other", 6, 100, 8);
	refused(s, 100, EBUSY, "pod ns/whole, container one", "pod ns/other, container one");
	s->pod[0]->is_started = true;
	add_pod(s, "limited", 6, wants, "\"tencent.com/vcuda-core-limit\":\"100\"");
	chosen(s, 100, "limited", "one");
	s->pod[1]->is_started = true;
	add_simple(s, "not-limited", 6, 100, 4);
	refused(s, 100, EBUSY, "ns/limited", "ns/not-limited");
}

static void test_broken(void **state)
{
	struct scene *s = *state;
	const struct wants wants[3] = { [1] = { 10, 4 } }, less[3] = { [1] = { 0, 6 } };
	bool has_unclaimed;
	struct error err = { 0 };
	add_pod(s, "broken", 5, wants, "\"tencent.com/vcuda-core-limit\":\"x\"");
	refused(s, 10, EINVAL, "pod ns/broken, container one: tencent.com/vcuda-core-limit", "'x'");
	add_simple(s, "whole", 5, 10, 4);
	refused(s, 10, EBUSY, "ns/broken", "ns/whole");
	add_pod(s, "less", 5, less, "");
	s->q.count = 6;
	assert_int_equal(vcuda_check_memory(&s->q, &has_unclaimed, &err), -EINVAL);
	assert_non_null(strstr(err.text,
			       "pod ns/less, container one: x/memory is requested without x/core"));
}

int main(void)
{
#define WITH_SCENE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		WITH_SCENE(test_containers_in_order),
		WITH_SCENE(test_who_is_not_meant),
		WITH_SCENE(test_equals_by_age),
		WITH_SCENE(test_equals_by_when_they_were_bound),
		WITH_SCENE(test_memory_tells),
		WITH_SCENE(test_unclear),
		WITH_SCENE(test_broken),
	};
	return cmocka_run_group_tests_name("vcuda choice", tests, NULL, NULL);
}
