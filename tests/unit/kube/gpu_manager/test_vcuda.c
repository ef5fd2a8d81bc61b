/* gpu-manager's vocabulary: what a container asks for, and what of it can't be. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kube/gpu_manager/vcuda.h"

#define MIB (UINT64_C(1) << 20)

static const struct vcuda_names names = { "tencent.com/vcuda-core", "tencent.com/vcuda-memory" };

/* Containers fetch (init) and main, of which both ask for that. */
static struct kube_pod *pod_with(const char *limits, const char *annotations)
{
	char text[4096];
	struct kube_pod *pod;
	struct error err;
	snprintf(text, sizeof(text),
		 "{\"metadata\":{\"name\":\"a\",\"namespace\":\"b\",\"uid\":\"c\","
		 "\"resourceVersion\":\"1\",\"annotations\":{%s}},\"spec\":{\"nodeName\":\"n-1\","
		 "\"initContainers\":[{\"name\":\"fetch\",\"resources\":{\"limits\":{%s}}}],"
		 "\"containers\":[{\"name\":\"main\",\"resources\":{\"limits\":{%s}}}]}}",
		 annotations, limits, limits);
	json_t *object = json_loads(text, 0, NULL);
	assert_non_null(object);
	if (pod_read(object, &pod, &err) < 0)
		fail_msg("%s", err.text);
	json_decref(object);
	return pod;
}

static int read_of(const char *limits, const char *annotations, size_t container,
		   struct vcuda_request *ask, struct error *err)
{
	struct kube_pod *pod = pod_with(limits, annotations);
	int r = vcuda_request_read(pod, container, &names, ask, err);
	pod_free(pod);
	return r;
}

static struct vcuda_request asked(const char *limits, const char *annotations)
{
	struct vcuda_request ask;
	struct error err = { 0 };
	if (read_of(limits, annotations, 1, &ask, &err) < 0)
		fail_msg("%s", err.text);
	return ask;
}

#define CORES(n) "\"tencent.com/vcuda-core\":\"" n "\""
#define MEMORY(n) "\"tencent.com/vcuda-memory\":\"" n "\""
#define BOTH(cores, memory) CORES(cores) "," MEMORY(memory)

static void test_resources(void **state)
{
	static const struct {
		const char *limits;
		unsigned cores, units, cards;
		double cores_pct;
		uint64_t mib;
	} rows[] = {
		{ BOTH("30", "20"), 30, 20, 1, 30, 5120 },
		{ BOTH("100", "1"), 100, 1, 1, 100, 256 },
		{ CORES("100"), 100, 0, 1, 100, 0 },
		{ BOTH("300", "7"), 300, 7, 3, 100, 597 },
		{ BOTH("1", "2k"), 1, 2000, 1, 1, 512000 },
		{ BOTH("1", "1Ki"), 1, 1024, 1, 1, 262144 },
		{ "\"tencent.com/vcuda-core\":40,\"tencent.com/vcuda-memory\":4", 40, 4, 1, 40,
		  1024 },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct vcuda_request ask = asked(rows[i].limits, "");
		assert_int_equal(ask.cores, rows[i].cores);
		assert_int_equal(ask.units, rows[i].units);
		assert_int_equal(ask.cards, rows[i].cards);
		assert_int_equal(ask.chosen, 0);
		assert_true(vcuda_cores_pct(&ask) == rows[i].cores_pct);
		assert_true(vcuda_limit_pct(&ask) == rows[i].cores_pct);
		assert_int_equal(vcuda_memory_bytes(&ask), rows[i].mib * MIB);
	}
}

static void test_limit(void **state)
{
	struct vcuda_request ask = asked(BOTH("30", "20"),
					 "\"tencent.com/vcuda-core-limit\":\"70\"");
	assert_true(vcuda_limit_pct(&ask) == 70);
	ask = asked(BOTH("30", "20"), "\"tencent.com/vcuda-core-limit\":\"300\"");
	assert_true(vcuda_limit_pct(&ask) == 100);
	/* What is guaranteed may always be used. */
	ask = asked(BOTH("30", "20"), "\"tencent.com/vcuda-core-limit\":\"10\"");
	assert_true(vcuda_limit_pct(&ask) == 30);
}

static void test_several_cards(void **state)
{
	struct vcuda_request ask = asked(BOTH("60", "41"), "\"allot.dev/cards\":\"2\"");
	assert_int_equal(ask.cards, 2);
	assert_true(vcuda_cores_pct(&ask) == 30);
	assert_int_equal(vcuda_memory_bytes(&ask), 41 * 128 * MIB);
	ask = asked(BOTH("150", "4"), "\"allot.dev/cards\":\"4\",\"main.allot.dev/cards\":\"2\"");
	assert_int_equal(ask.cards, 2);
	assert_true(vcuda_cores_pct(&ask) == 75);
	ask = asked(BOTH("200", "4"), "\"allot.dev/cards\":\"4\"");
	assert_int_equal(ask.cards, 4);
	assert_true(vcuda_cores_pct(&ask) == 50);
}

#define PREDICATED(assigned) \
	"\"tencent.com/predicate-time\":\"1\",\"tencent.com/gpu-assigned\":\"" assigned "\""
#define INDEX(cards) ",\"tencent.com/predicate-gpu-idx-0\":\"" cards "\""

static void test_a_scheduler(void **state)
{
	struct vcuda_request ask = asked(BOTH("30", "20"), PREDICATED("false") INDEX("3"));
	assert_int_equal(ask.chosen, 1);
	assert_int_equal(ask.minor[0], 3);
	ask = asked(BOTH("60", "20"), PREDICATED("false") INDEX("0,12"));
	assert_true(ask.chosen == 2 && ask.cards == 2 && ask.minor[1] == 12);
	/* The choice is over; among how many cards it was is not. */
	struct vcuda_request after = asked(BOTH("60", "20"), PREDICATED("true") INDEX("0,12"));
	assert_int_equal(after.chosen, 0);
	assert_true(vcuda_request_is_same(&ask, &after));
	ask = asked(BOTH("30", "20"), "\"tencent.com/gpu-assigned\":\"false\"" INDEX("3"));
	assert_int_equal(ask.chosen, 0);
	/* Of an init container it has chosen nothing. */
	struct error err;
	assert_int_equal(read_of(BOTH("30", "20"), PREDICATED("false"), 0, &ask, &err), 0);
	assert_int_equal(ask.chosen, 0);
}

#define TO_ALLOCATE(phase, shares) \
	"\"hami.io/bind-phase\":\"" phase "\",\"hami.io/vgpu-devices-to-allocate\":\"" shares "\""
#define ALLOCATED(shares) ",\"hami.io/vgpu-devices-allocated\":\"" shares "\""

static void test_a_scheduler_of_the_other_protocol(void **state)
{
	struct vcuda_request ask = asked(BOTH("30", "20"),
					 TO_ALLOCATE("allocating", ";GPU-a,NVIDIA,5120,30:;"));
	assert_true(ask.is_by_shares && ask.chosen == 1 && ask.cards == 1);
	assert_string_equal(ask.uuid[0], "GPU-a");
	/* Sixteen and two thirds are written as sixteen. */
	ask = asked(BOTH("50", "9"),
		    TO_ALLOCATE("allocating", ";GPU-a,NVIDIA,768,16:GPU-b,NVIDIA,768,16:"
					      "GPU-c,NVIDIA,768,16:;"));
	assert_true(ask.is_by_shares && ask.chosen == 3 && ask.cards == 3);
	/* It was given them: on how many cards it is, is known all the same. */
	struct vcuda_request after = asked(
		BOTH("50", "9"),
		TO_ALLOCATE("success", ";;")
			ALLOCATED(";GPU-a,NVIDIA,768,16:GPU-b,NVIDIA,768,16:GPU-c,NVIDIA,768,16:;"));
	assert_int_equal(after.chosen, 0);
	assert_true(vcuda_request_is_same(&ask, &after));
	/* All of a card is whatever it has. */
	ask = asked(CORES("100"), TO_ALLOCATE("allocating", ";GPU-a,NVIDIA,143000,100:;"));
	assert_int_equal(ask.chosen, 1);
}

static void test_same(void **state)
{
	struct vcuda_request a = asked(BOTH("30", "20"), ""), b = a;
	assert_true(vcuda_request_is_same(&a, &b));
	b.chosen = b.minor[0] = 1;
	assert_true(vcuda_request_is_same(&a, &b));
	b.limit_pct = 40;
	assert_false(vcuda_request_is_same(&a, &b));
	b = a;
	b.units = 21;
	assert_false(vcuda_request_is_same(&a, &b));
}

static void test_refused(void **state)
{
	static const struct {
		const char *limits, *annotations, *why;
		int code;
	} rows[] = {
		{ "\"cpu\":\"1\"", "", "", ENODATA },
		{ CORES("30"), "", "vcuda-core: 30: a part of a GPU needs tencent", EINVAL },
		{ MEMORY("30"), "",
		  "vcuda-memory is requested without tencent.com/vcuda-core: request both", EINVAL },
		{ BOTH("130", "3"), "", "130 for 1 GPU: must be at most 100 for each GPU", EINVAL },
		{ BOTH("250", "3"), "\"allot.dev/cards\":\"2\"", "250 for 2 GPUs", EINVAL },
		{ CORES("100"), "\"allot.dev/cards\":\"2\"", "a part of a GPU needs", EINVAL },
		{ BOTH("1.5", "3"), "", "vcuda-core: '1.5': must be a whole number up to", EINVAL },
		{ BOTH("5", "8Gi"), "", "vcuda-memory: '8Gi': must be a whole number up to", EINVAL },
		{ BOTH("5", "-1"), "", "'-1'", EINVAL },
		{ BOTH("1700", "1"), "", "'1700': must be a whole number up to 1600", EINVAL },
		{ BOTH("5", "5"), "\"allot.dev/cards\":\"x\"", "allot.dev/cards: 'x'", EINVAL },
		{ BOTH("5", "5"), "\"tencent.com/vcuda-core-limit\":\"0\"", "vcuda-core-limit: '0'",
		  ERANGE },
		{ BOTH("5", "5"), PREDICATED("false"), "predicate-gpu-idx-0 is missing", EINVAL },
		{ BOTH("5", "5"), PREDICATED("false") INDEX(""), "'': must be GPU numbers", EINVAL },
		{ BOTH("5", "5"), PREDICATED("false") INDEX("1,"), "'1,': must be GPU numbers",
		  EINVAL },
		{ BOTH("5", "5"), PREDICATED("false") INDEX(" 1"), "' 1': must be GPU numbers",
		  EINVAL },
		{ BOTH("5", "5"), PREDICATED("false") INDEX("1,1"), "names GPU 1 twice", EINVAL },
		{ BOTH("5", "5"), PREDICATED("false") INDEX("123456"), "must be GPU numbers",
		  EINVAL },
		{ BOTH("5", "5"),
		  PREDICATED("false") INDEX("0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16"),
		  "at most 16 GPUs", EINVAL },
		{ BOTH("5", "5"), PREDICATED("false") INDEX("0,1") ",\"allot.dev/cards\":\"3\"",
		  "has chosen 2 GPUs, but annotation allot.dev/cards asks for 3", EINVAL },
		{ BOTH("5", "5"),
		  PREDICATED("false") INDEX("0") ",\"tencent.com/predicate-node\":\"n-2\"",
		  "predicate-node is n-2, but the pod is on node n-1", EINVAL },
		{ BOTH("5", "5"), TO_ALLOCATE("allocating", ";GPU-a,NVIDIA,x,5:;"),
		  "hami.io/vgpu-devices-to-allocate: ", EINVAL },
		{ BOTH("5", "5"), TO_ALLOCATE("allocating", ";GPU-a,NVIDIA,1280,6:;"),
		  "1280 MiB and 6 cores of GPU-a, but the pod asks for 5 tencent.com/vcuda-core and 5 "
		  "tencent.com/vcuda-memory of 1 GPU",
		  EINVAL },
		{ BOTH("5", "5"), TO_ALLOCATE("allocating", ";GPU-a,NVIDIA,1281,5:;"),
		  "1281 MiB and 5 cores of GPU-a", EINVAL },
		{ BOTH("6", "4"),
		  TO_ALLOCATE("allocating", ";GPU-a,NVIDIA,512,3:GPU-a,NVIDIA,512,3:;"),
		  "names GPU-a twice", EINVAL },
		{ BOTH("5", "5"),
		  PREDICATED("false")
			  INDEX("0") "," TO_ALLOCATE("allocating", ";GPU-a,NVIDIA,1280,5:;"),
		  "one of the schedulers wrote annotations tencent.com/predicate-gpu-idx-*", EINVAL },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct vcuda_request ask;
		struct error err = { 0 };
		int r = read_of(rows[i].limits, rows[i].annotations, 1, &ask, &err);
		if (r != -rows[i].code || !strstr(err.text, rows[i].why))
			fail_msg("%zu: %d: '%s' lacks '%s'", i, r, err.text, rows[i].why);
	}
}

/* So that it is known whose call it is, all the same. */
static void test_what_can_be_read_of_what_is_wrong(void **state)
{
	struct vcuda_request ask;
	struct error err;
	assert_int_equal(read_of(BOTH("30", "20"), "\"tencent.com/vcuda-core-limit\":\"x\"", 1,
				 &ask, &err),
			 -EINVAL);
	assert_true(ask.cores == 30 && ask.units == 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_resources),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_several_cards),
		cmocka_unit_test(test_a_scheduler),
		cmocka_unit_test(test_a_scheduler_of_the_other_protocol),
		cmocka_unit_test(test_same),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_what_can_be_read_of_what_is_wrong),
	};
	return cmocka_run_group_tests_name("vcuda", tests, NULL, NULL);
}
