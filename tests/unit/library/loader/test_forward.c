/* forward.c: a passed function's arguments and result come through, also of a first call. */
#include "../test.h"

#include "abi/cuda_abi.h"
#include "library/loader/known.h"
#include "library/loader/names.h"
#include "library/loader/real.h"

/* ---- stand-ins for known.c and real.c ---- */

void *known_passed[NAMES_FORWARDS];
static unsigned int searches;
static bool is_driver_there;
static int found_number; /* index of the function that the search finds; -1: none */

static long real_many(long a, long b, long c, long d, long e, long f, double p, double q, double r,
		      double s, double t, double u, double v, double w, long g, long h);

bool real_find_driver(void)
{
	/* The compiler may use these registers: the forwarder must have saved the caller's values. */
#if defined(__x86_64__)
	__asm__ volatile("pxor %%xmm0, %%xmm0; pxor %%xmm7, %%xmm7; xorl %%r9d, %%r9d" ::
				 : "xmm0", "xmm7", "r9");
#endif
	searches++;
	if (found_number >= 0)
		known_passed[found_number] = (void *)real_many;
	return is_driver_there;
}

/* ---- a function of the driver's with more arguments than registers ---- */

typedef long many(long a, long b, long c, long d, long e, long f, double p, double q, double r,
		  double s, double t, double u, double v, double w, long g, long h);

static long real_many(long a, long b, long c, long d, long e, long f, double p, double q, double r,
		      double s, double t, double u, double v, double w, long g, long h)
{
	assert_true(a == 1 && b == 2 && c == 3 && d == 4 && e == 5 && f == 6 && g == 7 && h == 8);
	assert_true(p == 0.5 && q == 1.5 && r == 2.5 && s == 3.5 && t == 4.5 && u == 5.5 &&
		    v == 6.5 && w == 7.5);
	return 4242;
}

#define DECLARE_FORWARD(symbol, number) \
	void symbol(void); \
	enum { FORWARD_##symbol = number };
DRIVER_FORWARDS(DECLARE_FORWARD)

static long call(void (*forward)(void))
{
	return ((many *)(void *)forward)(1, 2, 3, 4, 5, 6, 0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5,
					 7, 8);
}

static int start(void **state)
{
	memset(known_passed, 0, sizeof(known_passed));
	searches = 0;
	is_driver_there = true;
	found_number = -1;
	return 0;
}

static void test_found_at_the_first_call(void **state)
{
	found_number = FORWARD_cuEventQuery;
	assert_int_equal(call(cuEventQuery), 4242);
	assert_int_equal(call(cuEventQuery), 4242);
	assert_int_equal(searches, 1);
}

static void test_without_a_driver(void **state)
{
	is_driver_there = false;
	assert_int_equal((CUresult)call(cuEventQuery), CUDA_ERROR_NO_DEVICE);
}

static void test_a_driver_that_lacks_it(void **state)
{
	assert_int_equal((CUresult)call(cuEventQuery), CUDA_ERROR_NOT_FOUND);
}

/* Each has its own place. */
#define CALL_EACH(symbol, number) \
	memset(known_passed, 0, sizeof(known_passed)); \
	known_passed[number] = (void *)real_many; \
	assert_int_equal(call(symbol), 4242);

static void test_each(void **state)
{
	DRIVER_FORWARDS(CALL_EACH)
	assert_int_equal(searches, 0);
	assert_true(NAMES_FORWARDS > 350);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_found_at_the_first_call, start),
		cmocka_unit_test_setup(test_without_a_driver, start),
		cmocka_unit_test_setup(test_a_driver_that_lacks_it, start),
		cmocka_unit_test_setup(test_each, start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
