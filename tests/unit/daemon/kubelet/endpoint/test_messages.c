/* The kubelet's messages: against bytes that are written out here, and against nonsense. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/kubelet/endpoint/messages.h"
#include "net/grpc_inside.h"

#define A "GPU-a"
#define B "GPU-b"

static const struct slices two = {
	.card_count = 2, .per_card = 2, .uuid = { A, B }, .numa = { -1, -1 }
};

/* The message is given back. */
static void check(struct grpc_message *m, const char *bytes, size_t size)
{
	assert_non_null(m);
	assert_int_equal(m->size - GRPC_HEAD_BYTES, size);
	assert_memory_equal(grpc_message_data(m), bytes, size);
	grpc_message_unref(m);
}
#define CHECK(m, bytes) check(m, bytes, sizeof(bytes) - 1)

static void test_register(void **state)
{
	static const char bytes[] = "\x0a\x07v1beta1\x12\x06x.sock\x1a\x03"
				    "a/b\x22\x02\x10\x01";
	size_t size = 0;
	uint8_t *data = message_register("x.sock", "a/b", true, &size);
	assert_int_equal(size, sizeof(bytes) - 1);
	assert_memory_equal(data, bytes, size);
	free(data);
}

static void test_answers(void **state)
{
	const bool is_healthy[SLICES_MAX_CARDS] = { true, false };
	const struct slice_set sets[] = { { .card = { { { 2 } }, { { 3 } } } },
					  { .card = { { { 0 } } } } };
	CHECK(message_options(true), "\x10\x01");
	CHECK(message_empty(), "");
	CHECK(message_devices(&two, is_healthy), "\x0a\x12\x0a\x07" A "-0\x12\x07Healthy"
						 "\x0a\x12\x0a\x07" A "-1\x12\x07Healthy"
						 "\x0a\x14\x0a\x07" B "-0\x12\x09Unhealthy"
						 "\x0a\x14\x0a\x07" B "-1\x12\x09Unhealthy");
	struct slices seated = two;
	seated.per_card = 1;
	seated.numa[0] = 0; /* no field has it */
	seated.numa[1] = 1;
	CHECK(message_devices(&seated, is_healthy),
	      "\x0a\x16\x0a\x07" A "-0\x12\x07Healthy\x1a\x02\x0a\x00"
	      "\x0a\x1a\x0a\x07" B "-0\x12\x09Unhealthy\x1a\x04\x0a\x02\x08\x01");
	CHECK(message_preferred(&two, sets, 2),
	      "\x0a\x1b\x0a\x07" A "-1\x0a\x07" B "-0\x0a\x07" B "-1\x0a\x00");
}

static char *word(const char *constant)
{
	return (char *)(uintptr_t)constant;
}

static void test_allocated(void **state)
{
	struct injection_env env[] = { { word("K"), word("v") } };
	struct injection_path mounts[] = { { word("/in"), word("/out"), true },
					   { word("/a"), word("/b"), false } };
	struct injection_path devices[] = { { word("/dev/x"), word("/dev/y") } };
	const struct injection injections[] = { { .env = env,
						  .env_count = 1,
						  .mount = mounts,
						  .mount_count = 2,
						  .device = devices,
						  .device_count = 1 },
						{ 0 } };
	CHECK(message_allocated(injections, 2), "\x0a\x37"
						"\x0a\x06\x0a\x01K\x12\x01v"
						"\x12\x0d\x0a\x03/in\x12\x04/out\x18\x01"
						"\x12\x08\x0a\x02/a\x12\x02/b"
						"\x1a\x14\x0a\x06/dev/x\x12\x06/dev/y\x1a\x02rw"
						"\x0a\x00");
}

static void test_requests(void **state)
{
	static const char preferred[] = "\x0a\x14\x0a\x07" A "-0\x12\x07" A "-1\x18\x02";
	static const char allocate[] = "\x0a\x09\x0a\x07" A "-0\x0a\x00";
	struct message_request r;
	assert_int_equal(
		message_read_preferred((const uint8_t *)preferred, sizeof(preferred) - 1, 2, &r), 0);
	assert_int_equal(r.count, 1);
	assert_int_equal(r.container[0].count, 1);
	assert_string_equal(r.container[0].ids[0], A "-0");
	assert_string_equal(r.container[0].must[0], A "-1");
	assert_int_equal(r.container[0].size, 2);
	message_request_free(&r);
	assert_int_equal(message_read_preferred((const uint8_t *)preferred, sizeof(preferred) - 1,
						1, &r),
			 -E2BIG);
	message_request_free(&r);
	assert_int_equal(
		message_read_allocate((const uint8_t *)allocate, sizeof(allocate) - 1, 4, &r), 0);
	assert_int_equal(r.count, 2);
	assert_int_equal(r.container[0].count, 1);
	assert_int_equal(r.container[1].count, 0);
	message_request_free(&r);
	assert_int_equal(message_read_pre_start((const uint8_t *)allocate + 2, 9, 4, &r), 0);
	assert_int_equal(r.count, 1);
	assert_string_equal(r.container[0].ids[0], A "-0");
	message_request_free(&r);
	assert_int_equal(message_read_allocate((const uint8_t *)"\x0a\x05x", 3, 4, &r), -EPROTO);
	message_request_free(&r);
}

/* Any input is parsed or refused. */
static void test_nonsense(void **state)
{
	static const char good[] = "\x0a\x14\x0a\x07" A "-0\x12\x07" A "-1\x18\x02";
	static int (*const readers[])(const uint8_t *data, size_t size, size_t most_ids,
				      struct message_request *ret) = { message_read_preferred,
								       message_read_allocate,
								       message_read_pre_start };
	unsigned seed = 20261122, understood = 0;
	for (unsigned turn = 0; turn < 100000; turn++) {
		uint8_t data[sizeof(good)];
		struct message_request r;
		memcpy(data, good, sizeof(good));
		for (unsigned i = rand_r(&seed) % 5; i < 5; i++)
			data[(size_t)rand_r(&seed) % sizeof(data)] = (uint8_t)rand_r(&seed);
		size_t size = (size_t)rand_r(&seed) % (sizeof(data) + 1);
		int e = readers[turn % 3](data, size, 4, &r);
		assert_true(e == 0 || e == -EPROTO || e == -E2BIG);
		for (size_t i = 0; e == 0 && i < r.count; i++)
			for (size_t k = 0; k < r.container[i].count; k++)
				understood += strlen(r.container[i].ids[k]) > 0;
		message_request_free(&r);
	}
	assert_true(understood > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_register),  cmocka_unit_test(test_answers),
		cmocka_unit_test(test_allocated), cmocka_unit_test(test_requests),
		cmocka_unit_test(test_nonsense),
	};
	return cmocka_run_group_tests_name("messages", tests, NULL, NULL);
}
