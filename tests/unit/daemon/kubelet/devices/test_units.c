/* Units of memory: how many there are, and which names are theirs. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/kubelet/devices/units.h"
#include "daemon/kubelet/endpoint/messages.h"
#include "net/grpc_inside.h"

#define MIB (UINT64_C(1) << 20)

static const struct slices slices = {
	.card_count = 2, .per_card = 100, .uuid = { "GPU-a", "GPU-b" }, .numa = { -1, -1 }
};
static const struct units units = { .slices = &slices, .count = { 560, 3 } };

static void test_how_many(void **state)
{
	assert_int_equal(units_of(256 * MIB), 1);
	assert_int_equal(units_of(1024 * MIB - 1), 3);
	assert_int_equal(units_of(UINT64_MAX), UNITS_MAX_PER_CARD);
	assert_int_equal(units_count(&units), 563);
}

static char *word(const char *constant)
{
	return (char *)(uintptr_t)constant;
}

static void refused(const char *first, const char *second, const char *why)
{
	char *ids[] = { word(first), word(second) };
	struct error err = { 0 };
	assert_int_equal(units_check(&units, ids, second ? 2 : 1, &err), -EINVAL);
	if (!strstr(err.text, why))
		fail_msg("'%s' lacks '%s'", err.text, why);
}

static void test_names(void **state)
{
	char *ids[] = { word("GPU-a-559"), word("GPU-b-0"), word("GPU-a-0"), word("GPU-b-2") };
	assert_int_equal(units_check(&units, ids, 4, NULL), 0);
	assert_int_equal(units_check(&units, ids, 0, NULL), 0);
	refused("GPU-a-560", NULL, "'560' must be 0 to 559");
	refused("GPU-b-3", NULL, "'3' must be 0 to 2");
	refused("GPU-a-01", NULL, "'01' must be");
	refused("GPU-a-", NULL, "'' must be");
	refused("GPU-a--1", NULL, "must be a GPU of this node");
	refused("GPU-a-99999", NULL, "'99999' must be");
	refused("GPU-c-0", NULL,
		"device 'GPU-c-0' is not one of allotd's: must be a GPU of this node");
	refused("x", NULL, "not one of allotd's");
	refused("GPU-a-7", "GPU-a-7", "'GPU-a-7' is named twice");
}

static void test_list(void **state)
{
	static const struct units few = { .slices = &slices, .count = { 1, 2 } };
	const bool is_healthy[SLICES_MAX_CARDS] = { true, false };
	static const char bytes[] = "\x0a\x12\x0a\x07GPU-a-0\x12\x07Healthy"
				    "\x0a\x14\x0a\x07GPU-b-0\x12\x09Unhealthy"
				    "\x0a\x14\x0a\x07GPU-b-1\x12\x09Unhealthy";
	struct grpc_message *m = message_units(&few, is_healthy);
	assert_int_equal(m->size - GRPC_HEAD_BYTES, sizeof(bytes) - 1);
	assert_memory_equal(grpc_message_data(m), bytes, sizeof(bytes) - 1);
	grpc_message_unref(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_how_many),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_list),
	};
	return cmocka_run_group_tests_name("units", tests, NULL, NULL);
}
