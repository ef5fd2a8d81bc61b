/* thunk.c: a passed function's arguments and result come through, whether or not it is asked about. */
#include "test.h"

#include "interpose/ahead.h"
#include "interpose/elf_lookup.h"
#include "interpose/guest.h"
#include "interpose/real.h"
#include "interpose/thunk.h"

struct guest guest;

/* ---- what ahead.c and real.c have ---- */

static struct {
	unsigned int asked;
	uint32_t thunk;
	uintptr_t argument[6];
	bool ends;
	CUresult result;
	unsigned int searches;
	void *found; /* by the search */
} seen;

bool ahead_meet(uint32_t thunk, const uintptr_t argument[6], CUresult *ret_result)
{
	/* As the compiler is free to: what the caller had there must have been put aside. */
#if defined(__x86_64__)
	__asm__ volatile("pxor %%xmm0, %%xmm0; pxor %%xmm7, %%xmm7; xorl %%r9d, %%r9d" ::
				 : "xmm0", "xmm7", "r9");
#endif
	seen.asked++;
	seen.thunk = thunk;
	memcpy(seen.argument, argument, sizeof(seen.argument));
	*ret_result = seen.result;
	return seen.ends;
}

bool real_find_driver(void)
{
	seen.searches++;
	allot_thunk_real[THUNK_cuEventQuery] = seen.found;
	return seen.found != NULL;
}

bool elf_find_object(const char *soname, struct elf_object *ret_object)
{
	seen.searches++;
	return seen.found != NULL;
}

void *elf_symbol(const struct elf_object *object, const char *name)
{
	return strcmp(name, "cuDevicePrimaryCtxGetState") == 0 ? seen.found : NULL;
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

DRIVER_THUNKS(THUNK_DECLARE)
DRIVER_QUIET_THUNKS(THUNK_DECLARE)

static long call(void (*thunk)(void))
{
	return ((many *)(void *)thunk)(1, 2, 3, 4, 5, 6, 0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 7,
				       8);
}

static int start(void **state)
{
	memset(&seen, 0, sizeof(seen));
	memset(&guest, 0, sizeof(guest));
	for (int i = 0; i < THUNK_COUNT; i++)
		allot_thunk_real[i] = (void *)real_many;
	thunk_forget_quiet();
	return 0;
}

/* Found at the first call, and after the driver was loaded anew; never asked about, whatever is queued. */
static void test_quiet(void **state)
{
	guest.ahead = 1;
	seen.found = (void *)real_many;
	assert_int_equal(call(cuDevicePrimaryCtxGetState), 4242);
	assert_int_equal(call(cuDevicePrimaryCtxGetState), 4242);
	assert_int_equal(seen.searches, 1);
	thunk_forget_quiet();
	assert_int_equal(call(cuDevicePrimaryCtxGetState), 4242);
	assert_int_equal(seen.searches, 2);
	assert_int_equal(seen.asked, 0);
}

static void test_quiet_without_a_driver(void **state)
{
	assert_int_equal((CUresult)call(cuDevicePrimaryCtxGetState), CUDA_ERROR_NO_DEVICE);
	seen.found = (void *)real_many;
	assert_int_equal((CUresult)call(cuDeviceGetAttribute), CUDA_ERROR_NOT_FOUND);
}

static void test_nothing_pending(void **state)
{
	assert_int_equal(call(cuEventQuery), 4242);
	assert_int_equal(seen.asked, 0);
}

static void test_asked_and_let_go_on(void **state)
{
	guest.ahead = 1;
	assert_int_equal(call(cuEventQuery), 4242);
	assert_int_equal(seen.asked, 1);
	assert_int_equal(seen.thunk, THUNK_cuEventQuery);
	for (uintptr_t i = 0; i < 6; i++)
		assert_int_equal(seen.argument[i], i + 1);
	assert_int_equal(call(cuCtxSynchronize), 4242);
	assert_int_equal(seen.thunk, THUNK_cuCtxSynchronize);
}

static void test_asked_and_ended(void **state)
{
	guest.ahead = 1;
	seen.ends = true;
	seen.result = CUDA_ERROR_NOT_READY;
	allot_thunk_real[THUNK_cuEventQuery] = (void *)1; /* not to be called */
	assert_int_equal((CUresult)call(cuEventQuery), CUDA_ERROR_NOT_READY);
}

static void test_a_watched_one_is_always_asked_about(void **state)
{
	assert_int_equal(call(cuIpcGetEventHandle), 4242);
	assert_int_equal(seen.asked, 1);
	assert_int_equal(seen.thunk, THUNK_cuIpcGetEventHandle);
}

static void test_called_before_the_driver_is_found(void **state)
{
	allot_thunk_real[THUNK_cuEventQuery] = NULL;
	seen.found = (void *)real_many;
	assert_int_equal(call(cuEventQuery), 4242);
	assert_int_equal(seen.searches, 1);
	allot_thunk_real[THUNK_cuEventQuery] = NULL;
	seen.found = NULL;
	assert_int_equal((CUresult)call(cuEventQuery), CUDA_ERROR_NO_DEVICE);
}

/* Each has its own number, and its own place for the driver's. */
#define CALL_EACH(symbol, kind, number) \
	seen.asked = 0; \
	assert_int_equal(call(symbol), 4242); \
	assert_int_equal(seen.asked, 1); \
	assert_int_equal(seen.thunk, number);

static void test_each(void **state)
{
	guest.ahead = 1;
	DRIVER_THUNKS(CALL_EACH)
	assert_true(THUNK_COUNT > 250);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_nothing_pending, start),
		cmocka_unit_test_setup(test_asked_and_let_go_on, start),
		cmocka_unit_test_setup(test_asked_and_ended, start),
		cmocka_unit_test_setup(test_a_watched_one_is_always_asked_about, start),
		cmocka_unit_test_setup(test_called_before_the_driver_is_found, start),
		cmocka_unit_test_setup(test_each, start),
		cmocka_unit_test_setup(test_quiet, start),
		cmocka_unit_test_setup(test_quiet_without_a_driver, start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
