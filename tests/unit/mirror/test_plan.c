/* From what was found to what a mirror consists of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "mirror/plan.h"

#define LIBRARY64(path_, soname_, needed_) \
	{ \
		.path = (char *)(path_), .soname = (char *)(soname_), .needed = (char *)(needed_), \
		.bits = 64, .machine = 62 \
	}
#define LIBRARY32(path_, soname_) \
	{ \
		.path = (char *)(path_), .soname = (char *)(soname_), .needed = (char *)"", \
		.bits = 32, .machine = 3 \
	}
#define PROGRAM(path_) \
	{ \
		.path = (char *)(path_) \
	}
#define CUDA LIBRARY64("/l/libcuda.so.9", "libcuda.so.1", "libc.so.6")

struct expected {
	enum mirror_kind kind;
	const char *to, *from;
};

static void check(struct mirror_file *found, size_t count, const struct expected *expected,
		  size_t expected_count, size_t left_out)
{
	const struct mirror_files files = { found, count };
	struct mirror_plan plan;

	assert_int_equal(mirror_plan_make(&files, "/a/liballot.so", &plan, NULL), 0);
	assert_int_equal(plan.left_out, left_out);
	assert_int_equal(plan.count, expected_count);
	for (size_t i = 0; i < expected_count; i++) {
		assert_int_equal(plan.action[i].kind, expected[i].kind);
		assert_string_equal(plan.action[i].to, expected[i].to);
		assert_string_equal(plan.action[i].from, expected[i].from);
	}
	assert_string_equal(plan.driver, "9");
	mirror_plan_free(&plan);
	mirror_plan_free(&plan);
}

#define CHECK(left_out, found, ...) \
	do { \
		const struct expected e[] = { __VA_ARGS__ }; \
		check(found, sizeof(found) / sizeof(*(found)), e, sizeof(e) / sizeof(*e), \
		      left_out); \
	} while (0)

#define CUDA_ACTIONS \
	{ MIRROR_FILE, "lib64/libcuda.so.9", "/l/libcuda.so.9" }, \
		{ MIRROR_SHIM, "lib64/libcuda.so.1", "libcuda.so.9" }, \
	{ \
		MIRROR_SHIM, "lib64/libcuda.so", "libcuda.so.9" \
	}
#define OWN_ACTION \
	{ \
		MIRROR_FILE, "lib64/liballot.so", "/a/liballot.so" \
	}

static void test_the_least(void **state)
{
	struct mirror_file found[] = { CUDA };

	CHECK(0, found, CUDA_ACTIONS, OWN_ACTION);
}

static void test_links_and_programs(void **state)
{
	struct mirror_file found[] = {
		CUDA,
		LIBRARY64("/l/libx.so.9", "libx.so.1", ""),
		LIBRARY64("/l/liby.so.1", "liby.so.1", ""), /* needs no link */
		LIBRARY64("/l/libz.so", NULL, ""),
		PROGRAM("/b/nvidia-smi"),
	};

	CHECK(0, found, CUDA_ACTIONS, { MIRROR_FILE, "lib64/libx.so.9", "/l/libx.so.9" },
	      { MIRROR_LINK, "lib64/libx.so.1", "libx.so.9" },
	      { MIRROR_FILE, "lib64/liby.so.1", "/l/liby.so.1" },
	      { MIRROR_FILE, "lib64/libz.so", "/l/libz.so" },
	      { MIRROR_FILE, "bin/nvidia-smi", "/b/nvidia-smi" }, OWN_ACTION);
}

static void test_both_word_sizes(void **state)
{
	struct mirror_file found[] = {
		CUDA,
		LIBRARY32("/32/libcuda.so.9", "libcuda.so.1"),
		LIBRARY32("/32/libx.so.9", "libx.so.1"),
	};

	CHECK(1, found, CUDA_ACTIONS, { MIRROR_FILE, "lib/libx.so.9", "/32/libx.so.9" },
	      { MIRROR_LINK, "lib/libx.so.1", "libx.so.9" }, OWN_ACTION);
}

static void test_the_first_of_two(void **state)
{
	struct mirror_file found[] = {
		CUDA,
		LIBRARY64("/old/libcuda.so.9", "libcuda.so.1", ""),
		LIBRARY64("/l/libx.so.9", "libx.so.1", ""),
		LIBRARY64("/old/libx.so.8", "libx.so.1", ""),
	};

	CHECK(0, found, CUDA_ACTIONS, { MIRROR_FILE, "lib64/libx.so.9", "/l/libx.so.9" },
	      { MIRROR_LINK, "lib64/libx.so.1", "libx.so.9" },
	      { MIRROR_FILE, "lib64/libx.so.8", "/old/libx.so.8" }, OWN_ACTION);
}

static void test_blocked(void **state)
{
	struct mirror_file found[] = {
		CUDA,
		LIBRARY64("/l/libc.so.6", "libc.so.6", ""),
		LIBRARY64("/l/libGL.so.1.7.0", "libGL.so.1", "libX11.so.6"),
		LIBRARY64("/l/libEGL.so.1", "libEGL.so.1", "libm.so.6 libGLdispatch.so.0"),
		LIBRARY64("/l/libGLX.so.0", "libGLX.so.0", "libnvidia-tls.so.9"),
		LIBRARY64("/l/libGLsomething.so.0", "libGLsomething.so.0", ""),
	};

	CHECK(2, found, CUDA_ACTIONS, { MIRROR_FILE, "lib64/libEGL.so.1", "/l/libEGL.so.1" },
	      { MIRROR_FILE, "lib64/libGLX.so.0", "/l/libGLX.so.0" },
	      { MIRROR_FILE, "lib64/libGLsomething.so.0", "/l/libGLsomething.so.0" }, OWN_ACTION);
}

static void test_a_file_named_as_a_shim(void **state)
{
	struct mirror_file found[] = {
		CUDA,
		LIBRARY64("/l/libnvidia-ml.so.1", "libnvidia-ml.so.1", ""),
	};

	CHECK(0, found, CUDA_ACTIONS,
	      { MIRROR_FILE, "lib64/libnvidia-ml.so.1.driver", "/l/libnvidia-ml.so.1" },
	      { MIRROR_SHIM, "lib64/libnvidia-ml.so.1", "libnvidia-ml.so.1.driver" },
	      { MIRROR_SHIM, "lib64/libnvidia-ml.so", "libnvidia-ml.so.1.driver" }, OWN_ACTION);
}

static void test_no_driver(void **state)
{
	struct mirror_file only32[] = { LIBRARY32("/32/libcuda.so.9", "libcuda.so.1") };
	const struct mirror_files none = { 0 }, wrong = { only32, 1 };
	struct mirror_plan plan;

	assert_int_equal(mirror_plan_make(&none, "/a/liballot.so", &plan, NULL), -ENOENT);
	assert_int_equal(mirror_plan_make(&wrong, "/a/liballot.so", &plan, NULL), -ENOENT);
}

static void test_versions(void **state)
{
	assert_string_equal(mirror_version("libcuda.so.580.159.04"), "580.159.04");
	assert_string_equal(mirror_version("libcuda.so"), "");
	assert_string_equal(mirror_version("nvidia-smi"), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_least),
		cmocka_unit_test(test_links_and_programs),
		cmocka_unit_test(test_both_word_sizes),
		cmocka_unit_test(test_the_first_of_two),
		cmocka_unit_test(test_blocked),
		cmocka_unit_test(test_a_file_named_as_a_shim),
		cmocka_unit_test(test_no_driver),
		cmocka_unit_test(test_versions),
	};

	return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}
