/* Which devices may reach which context's memory. */
#include "../test.h"

#include "library/swap/swap_peers.h"

static CUcontext context(uintptr_t n)
{
	return (CUcontext)n;
}

static void test_devices_of_a_context(void **state)
{
	CUdevice peer[SWAP_PEERS_MAX];

	swap_peers_reset();
	uint32_t changes = swap_peers_generation();
	assert_int_equal(swap_peers_of(context(1), peer), 0);
	assert_true(swap_peers_enable(context(2), 7, context(1)));
	assert_true(swap_peers_enable(context(3), 8, context(1)));
	assert_true(swap_peers_enable(context(1), 6, context(2)));
	assert_int_not_equal(swap_peers_generation(), changes);
	assert_int_equal(swap_peers_of(context(1), peer), 2);
	assert_int_equal(peer[0], 7);
	assert_int_equal(peer[1], 8);
	assert_int_equal(swap_peers_of(context(2), peer), 1);
	assert_int_equal(peer[0], 6);
}

/* A device with two contexts is out when the last of them is. */
static void test_two_contexts_of_a_device(void **state)
{
	CUdevice peer[SWAP_PEERS_MAX];

	swap_peers_reset();
	swap_peers_enable(context(2), 7, context(1));
	swap_peers_enable(context(3), 7, context(1));
	assert_int_equal(swap_peers_of(context(1), peer), 1);
	assert_false(swap_peers_disable(context(2), 7, context(1)));
	assert_int_equal(swap_peers_of(context(1), peer), 1);
	assert_true(swap_peers_disable(context(3), 7, context(1)));
	assert_int_equal(swap_peers_of(context(1), peer), 0);
}

static void test_a_context_is_destroyed(void **state)
{
	CUdevice peer[SWAP_PEERS_MAX];

	swap_peers_reset();
	swap_peers_enable(context(2), 7, context(1));
	swap_peers_enable(context(1), 6, context(2));
	swap_peers_enable(context(3), 8, context(4));
	swap_peers_context_gone(context(1));
	assert_int_equal(swap_peers_of(context(1), peer), 0);
	assert_int_equal(swap_peers_of(context(2), peer), 0);
	assert_int_equal(swap_peers_of(context(4), peer), 1);
}

static void test_there_is_an_end(void **state)
{
	uintptr_t n = 1;

	swap_peers_reset();
	while (swap_peers_enable(context(n), 7, context(1)))
		n++;
	assert_true(n > 256);
	swap_peers_context_gone(context(2));
	assert_true(swap_peers_enable(context(2), 7, context(1)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_devices_of_a_context),
		cmocka_unit_test(test_two_contexts_of_a_device),
		cmocka_unit_test(test_a_context_is_destroyed),
		cmocka_unit_test(test_there_is_an_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
