/* Registering with a kubelet that is there, that refuses, that is not there yet, that does not answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "../../../net/served.h"
#include "daemon/kubelet/endpoint/registrar.h"

#define PATIENCE_NS (20 * NSEC_PER_SEC)
#define ENDPOINT "allot-gpu.sock"

/* ---- a kubelet ---- */

static char path[64];
static atomic_uint asked, refusals; /* this many of the next calls are refused */
static atomic_bool is_silent;

static void silent_gone(void *data, struct grpc_call *call)
{
}

static void take_registration(void *data, struct grpc_call *call, const uint8_t *message,
			      size_t size)
{
	bool is_right = size > strlen(ENDPOINT) && memmem(message, size, ENDPOINT, strlen(ENDPOINT));
	atomic_fetch_add(&asked, 1);
	if (atomic_load(&is_silent)) {
		grpc_call_keep(call, silent_gone, NULL);
	} else if (!is_right || atomic_load(&refusals)) {
		atomic_fetch_sub(&refusals, 1);
		grpc_call_end(call, GRPC_UNKNOWN, "not now");
	} else {
		served_reply(call, NULL, 0);
	}
}

static const struct grpc_method method = { "/v1beta1.Registration/Register", take_registration };

static void kubelet_start(void)
{
	served_start(path, &method);
}

/* ---- tests ---- */

static struct registrar *registrar;

static int setup(void **state)
{
	struct error err;
	snprintf(path, sizeof(path), "/tmp/allot-kubelet-%d", (int)getpid());
	atomic_store(&asked, 0);
	atomic_store(&refusals, 0);
	atomic_store(&is_silent, false);
	return registrar_start(path, ENDPOINT, "nvidia.com/gpu", true, &registrar, &err);
}

static int teardown(void **state)
{
	registrar = registrar_stop(registrar);
	return 0;
}

#define UNTIL(condition) \
	do { \
		uint64_t end_ns_ = clock_now_ns() + PATIENCE_NS; \
		while (!(condition) && clock_now_ns() < end_ns_) \
			usleep(1000); \
		assert_true(condition); \
	} while (0)

static bool is_registered(void)
{
	return registrar_figures(registrar).is_registered;
}

static void test_once_and_again(void **state)
{
	kubelet_start();
	usleep(20000);
	assert_int_equal(atomic_load(&asked), 0);
	registrar_register(registrar);
	UNTIL(is_registered());
	registrar_register(registrar);
	UNTIL(registrar_figures(registrar).registrations == 2 && is_registered());
	registrar_reset(registrar);
	assert_false(is_registered());
	assert_int_equal(atomic_load(&asked), 2);
	assert_int_equal(registrar_figures(registrar).failures, 0);
	served_end();
}

static void test_refused(void **state)
{
	kubelet_start();
	atomic_store(&refusals, 3);
	registrar_register(registrar);
	UNTIL(is_registered());
	assert_int_equal(atomic_load(&asked), 4);
	assert_int_equal(registrar_figures(registrar).failures, 3);
	served_end();
}

static void test_not_there_yet(void **state)
{
	registrar_register(registrar);
	UNTIL(registrar_figures(registrar).failures >= 3);
	kubelet_start();
	UNTIL(is_registered());
	served_end();
}

/* Its end does not wait for the kubelet's answer. */
static void test_no_answer(void **state)
{
	kubelet_start();
	atomic_store(&is_silent, true);
	registrar_register(registrar);
	UNTIL(atomic_load(&asked) == 1);
	uint64_t begun_ns = clock_now_ns();
	registrar = registrar_stop(registrar);
	assert_true(clock_now_ns() - begun_ns < 10 * NSEC_PER_SEC);
	served_end();
}

/* An answer after the kubelet has gone does not count. */
static void test_forgotten_meanwhile(void **state)
{
	registrar_register(registrar);
	UNTIL(registrar_figures(registrar).failures >= 1);
	registrar_reset(registrar);
	kubelet_start();
	usleep(50000);
	assert_false(is_registered());
	served_end();
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_once_and_again),      TEST(test_refused),
		TEST(test_not_there_yet),       TEST(test_no_answer),
		TEST(test_forgotten_meanwhile),
	};
	return cmocka_run_group_tests_name("registrar", tests, NULL, NULL);
}
