/*
 * Files that others made: the loader's cache, libraries, a configuration. Whole, cut off at every byte,
 * and with every byte changed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mirror/volume_config.h"
#include "mirror/elf_file.h"
#include "mirror/ld_cache.h"
#include "mirror/shim.h"

/* A cache of two entries, as glibc writes it on this machine. */
static size_t make_cache(uint8_t bytes[256], size_t in_front)
{
	static const char strings[] =
		"libcuda.so.1\0/usr/lib/libcuda.so.1\0libc.so.6\0/lib/libc.so.6";
	const uint32_t start = 48 + 2 * 24;
	const uint32_t offsets[] = { start, start + 13, start + 35, start + 45 };
	const uint32_t count = 2;

	memset(bytes, 0, 256);
	memcpy(bytes + in_front, "glibc-ld.so.cache1.1", 20);
	memcpy(bytes + in_front + 20, &count, 4);
	for (size_t i = 0; i < 4; i++)
		memcpy(bytes + in_front + 48 + i / 2 * 24 + 4 + i % 2 * 4, &offsets[i], 4);
	memcpy(bytes + in_front + start, strings, sizeof(strings));
	return in_front + start + sizeof(strings);
}

static int count_entry(void *context, const char *name, const char *path, struct error *err)
{
	size_t *count = context;

	if (*count == 0) {
		assert_string_equal(name, "libcuda.so.1");
		assert_string_equal(path, "/usr/lib/libcuda.so.1");
	} else {
		assert_string_equal(name, "libc.so.6");
		assert_string_equal(path, "/lib/libc.so.6");
	}
	++*count;
	return 0;
}

static int touch_entry(void *context, const char *name, const char *path, struct error *err)
{
	*(size_t *)context += strlen(name) + strlen(path);
	return 0;
}

static int refuse_entry(void *context, const char *name, const char *path, struct error *err)
{
	return error_set(err, EPERM, "%s", name);
}

static void test_cache(void **state)
{
	uint8_t bytes[256];

	/* Alone, and behind what an older loader reads. */
	for (size_t in_front = 0; in_front <= 64; in_front += 64) {
		size_t size = make_cache(bytes, in_front), count = 0;
		assert_int_equal(ld_cache_each(bytes, size, count_entry, &count, NULL), 0);
		assert_int_equal(count, 2);
	}
	struct error err = { 0 };
	size_t size = make_cache(bytes, 0);
	assert_int_equal(ld_cache_each(bytes, size, refuse_entry, NULL, &err), -EPERM);
	assert_string_equal(err.text, "libcuda.so.1");
	assert_int_equal(ld_cache_each(bytes, 0, touch_entry, NULL, NULL), -EINVAL);
	assert_int_equal(ld_cache_each("ld.so-1.7.0", 12, touch_entry, NULL, NULL), -EINVAL);
}

/* Exactly `size` bytes on the heap, so that a sanitizer sees one byte too many. */
static uint8_t *exact(const void *bytes, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);

	assert_non_null(copy);
	memcpy(copy, bytes, size);
	return copy;
}

static void test_damaged_cache(void **state)
{
	uint8_t bytes[256];
	size_t whole = make_cache(bytes, 0), sum = 0;

	for (size_t size = 0; size < whole; size++) {
		uint8_t *cut = exact(bytes, size);
		assert_int_equal(ld_cache_each(cut, size, touch_entry, &sum, NULL), -EINVAL);
		free(cut);
	}
	for (size_t i = 0; i < whole; i++) {
		uint8_t *changed = exact(bytes, whole);
		changed[i] ^= 0xff;
		ld_cache_each(changed, whole, touch_entry, &sum, NULL);
		free(changed);
	}
}

static const char *const needed[2] = { "liballot.so", "libcuda.so.580.159.04" };

static void test_shim_is_a_library(void **state)
{
	uint8_t bytes[SHIM_SIZE_MAX];
	size_t size = shim_make(EM_AARCH64, "liballot-shim", needed, bytes);
	struct elf_file file;

	assert_true(size > 0);
	assert_int_equal(elf_file_read(bytes, size, &file), 0);
	assert_int_equal(file.bits, 64);
	assert_int_equal(file.machine, EM_AARCH64);
	assert_string_equal(file.soname, "liballot-shim");
	assert_int_equal(file.needed_count, 2);
	assert_string_equal(file.needed[0], needed[0]);
	assert_string_equal(file.needed[1], needed[1]);
}

static void test_names_too_long_for_a_shim(void **state)
{
	char name[SHIM_SIZE_MAX];
	const char *const both[2] = { "liballot.so", name };
	uint8_t bytes[SHIM_SIZE_MAX];

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(shim_make(EM_X86_64, "soname", both, bytes), 0);
}

/* Every string ends inside the file: a sanitizer sees to it. */
static size_t length_of_strings(const struct elf_file *file)
{
	size_t sum = file->soname ? strlen(file->soname) : 0;

	for (unsigned i = 0; i < file->needed_count; i++)
		sum += strlen(file->needed[i]);
	return sum;
}

static void test_damaged_library(void **state)
{
	uint8_t bytes[SHIM_SIZE_MAX];
	size_t whole = shim_make(EM_X86_64, "liballot-shim", needed, bytes);
	struct elf_file file;

	for (size_t size = 0; size < whole; size++) {
		uint8_t *cut = exact(bytes, size);
		if (elf_file_read(cut, size, &file) == 0)
			assert_true(length_of_strings(&file) < whole * ELF_FILE_NEEDED_MAX);
		free(cut);
	}
	for (size_t i = 0; i < whole; i++)
		for (unsigned value = 0; value < 256; value += 51) {
			uint8_t *changed = exact(bytes, whole);
			changed[i] = (uint8_t)value;
			if (elf_file_read(changed, whole, &file) == 0)
				assert_true(length_of_strings(&file) < whole * ELF_FILE_NEEDED_MAX);
			free(changed);
		}
	assert_int_equal(elf_file_read("#!/bin/sh\n# not a library", 25, &file), -ENOEXEC);
}

static void test_configuration(void **state)
{
	static const char text[] =
		"{\"volume\": [{\"name\": \"nvidia\", \"base\": \"/x\", \"components\":"
		"{\"binaries\": [\"nvidia-smi\"], \"libraries\": [\"libcuda.so\", \"a\"]}},"
		"{\"components\": {\"libraries\": [\"b\"]}}]}";
	struct mirror_config config;

	assert_int_equal(mirror_config_parse(text, &config, NULL), 0);
	assert_string_equal(config.libraries[0], "libcuda.so");
	assert_string_equal(config.libraries[1], "a");
	assert_string_equal(config.libraries[2], "b");
	assert_null(config.libraries[3]);
	assert_string_equal(config.binaries[0], "nvidia-smi");
	assert_null(config.binaries[1]);
	mirror_config_free(&config);
	mirror_config_free(&config);
	assert_int_equal(mirror_config_default(&config, NULL), 0);
	assert_string_equal(config.libraries[0], "libcuda.so");
	mirror_config_free(&config);
	for (size_t size = 0; size < sizeof(text) - 1; size++) {
		char *cut = strndup(text, size);
		assert_int_equal(mirror_config_parse(cut, &config, NULL), -EINVAL);
		free(cut);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cache),
		cmocka_unit_test(test_damaged_cache),
		cmocka_unit_test(test_shim_is_a_library),
		cmocka_unit_test(test_names_too_long_for_a_shim),
		cmocka_unit_test(test_damaged_library),
		cmocka_unit_test(test_configuration),
	};

	return cmocka_run_group_tests_name("files", tests, NULL, NULL);
}
