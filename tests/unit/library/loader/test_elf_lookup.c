/*
 * Symbols found by reading ELF tables: by both kinds of hash, the default of several versions, nothing
 * that is undefined, thread-local or indirect.
 */
#include "../test.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>

#include "library/loader/elf_lookup.h"

#ifndef LIBRARY_GNU
#error "LIBRARY_GNU and LIBRARY_SYSV: versioned.c built with either hash style"
#endif

/* As an interposer's own definition would be: in this object, found by no search that skips it. */
__attribute__((visibility("default"))) int elf_plain(void);
int elf_plain(void)
{
	return -1;
}

static int call(void *function)
{
	return ((int (*)(void))function)();
}

static void finds_what_is_in(const char *path)
{
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	const char *name = strrchr(path, '/') + 1;
	struct elf_object object;

	assert_non_null(handle);
	assert_true(elf_find_object(name, &object));
	assert_string_equal(object.soname, name);
	assert_int_equal(call(elf_symbol(&object, "elf_plain")), 4);
	assert_ptr_equal(elf_symbol(&object, "elf_plain"), dlsym(handle, "elf_plain"));
	assert_int_equal(*(int *)elf_symbol(&object, "elf_data"), 42);
	/* The default version, and a hidden version where there is no other. */
	assert_int_equal(call(elf_symbol(&object, "elf_versioned")), 2);
	assert_int_equal(call(elf_symbol(&object, "elf_retired")), 3);
	assert_null(elf_symbol(&object, "elf_thread_local"));
	assert_null(elf_symbol(&object, "elf_indirect"));
	assert_null(elf_symbol(&object, "elf_not_default")); /* local */
	assert_null(elf_symbol(&object, "malloc"));
	assert_null(elf_symbol(&object, ""));
	assert_null(elf_symbol(&object, "elf_plai"));
	assert_null(elf_symbol(&object, "elf_plain_"));
	dlclose(handle);
	assert_false(elf_find_object(name, &object));
}

static void test_gnu_hash(void **state)
{
	finds_what_is_in(LIBRARY_GNU);
}

static void test_sysv_hash(void **state)
{
	finds_what_is_in(LIBRARY_SYSV);
}

static void test_hash_kinds_are_what_they_claim(void **state)
{
	void *gnu = dlopen(LIBRARY_GNU, RTLD_NOW), *sysv = dlopen(LIBRARY_SYSV, RTLD_NOW);
	struct elf_object object;

	assert_true(elf_find_object(strrchr(LIBRARY_GNU, '/') + 1, &object));
	assert_non_null(object.gnu_hash);
	assert_null(object.sysv_hash);
	assert_true(elf_find_object(strrchr(LIBRARY_SYSV, '/') + 1, &object));
	assert_null(object.gnu_hash);
	assert_non_null(object.sysv_hash);
	dlclose(gnu);
	dlclose(sysv);
}

static void test_finds_libc(void **state)
{
	static const char *const names[] = { "dlsym",   "dlopen", "pthread_create", "getenv",
					     "printf",  "malloc", "free",           "atexit",
					     "environ", "stdout" };
	static const char own;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		void *want = dlsym(RTLD_DEFAULT, names[i]);
		if (want)
			assert_non_null(elf_any_symbol(&own, names[i]));
	}
	/* No other object stands between: the very address that the linker finds. */
	assert_ptr_equal(elf_any_symbol(&own, "pthread_create"), dlsym(RTLD_NEXT, "pthread_create"));
	assert_null(elf_any_symbol(&own, "no_such_symbol"));
	assert_null(elf_next_symbol(&own, "no_such_symbol"));
	/* And by the loader's own list. */
	assert_ptr_equal(elf_next_symbol_early("dlsym"), elf_next_symbol(&own, "dlsym"));
	assert_ptr_equal(elf_next_symbol_early("getenv"), elf_next_symbol(&own, "getenv"));
	assert_null(elf_next_symbol_early("no_such_symbol"));
}

static void test_skips_the_object_that_asks(void **state)
{
	static const char own;
	void *handle = dlopen(LIBRARY_GNU, RTLD_NOW | RTLD_GLOBAL);
	void *theirs = dlsym(handle, "elf_plain");

	assert_int_equal(elf_plain(), -1);
	assert_ptr_equal(elf_any_symbol(&own, "elf_plain"), theirs);
	assert_ptr_equal(elf_next_symbol(&own, "elf_plain"), theirs);
	/* Behind that library there is no definition; before it, ours. */
	assert_null(elf_next_symbol(theirs, "elf_plain"));
	dlclose(handle);
}

static void test_what_a_handle_stands_for(void **state)
{
	void *handle = dlopen(LIBRARY_GNU, RTLD_NOW | RTLD_LOCAL);
	struct elf_object by_handle, by_name;

	assert_true(elf_object_of_handle(handle, &by_handle));
	assert_true(elf_find_object(strrchr(LIBRARY_GNU, '/') + 1, &by_name));
	assert_true(by_handle.base == by_name.base);
	assert_false(elf_object_of_handle(NULL, &by_handle));
	assert_false(elf_first_of_namespace(handle, &by_handle));
	dlclose(handle);
}

static void test_another_namespace(void **state)
{
	void *first = dlmopen(LM_ID_NEWLM, LIBRARY_GNU, RTLD_NOW);
	struct elf_object object;
	Lmid_t id;

	if (!first)
		skip(); /* no dlmopen under a sanitizer */
	assert_int_equal(dlinfo(first, RTLD_DI_LMID, &id), 0);
	size_t objects = elf_objects_from(first);
	void *second = dlmopen(id, LIBRARY_SYSV, RTLD_NOW);
	assert_non_null(second);
	assert_int_equal(elf_objects_from(first), objects + 1);
	assert_true(elf_first_of_namespace(second, &object));
	assert_string_equal(object.soname, strrchr(LIBRARY_GNU, '/') + 1);
	assert_true(elf_is_in_first_namespace());
	dlclose(second);
	assert_int_equal(elf_objects_from(first), objects);
	dlclose(first);
}

static void test_which_file_has_an_address(void **state)
{
	void *handle = dlopen(LIBRARY_GNU, RTLD_NOW | RTLD_LOCAL);
	struct elf_object object;
	bool is_before_us;

	assert_true(elf_object_holding(dlsym(handle, "elf_plain"), &object, &is_before_us));
	assert_string_equal(object.soname, strrchr(LIBRARY_GNU, '/') + 1);
	assert_false(is_before_us);
	assert_false(elf_object_holding(&object, &object, &is_before_us)); /* the stack */
	dlclose(handle);
}

static void test_the_function_behind_is_kept(void **state)
{
	void *slot = NULL, *none = NULL;

	assert_ptr_equal(elf_real_function(&slot, "getenv"), dlsym(RTLD_NEXT, "getenv"));
	assert_ptr_equal(slot, dlsym(RTLD_NEXT, "getenv"));
	assert_null(elf_real_function(&none, "no_such_symbol"));
}

/* As gVisor's vDSO: the addresses in its dynamic section are above its base, but not relocated. */
static void test_an_object_linked_at_a_high_address(void **state)
{
	static struct image {
		ElfW(Dyn) dynamic[5];
		ElfW(Sym) symbols[2];
		uint32_t hash[5]; /* buckets, chains, bucket[1], chain[2] */
		char strings[16];
	} image = { .hash = { 1, 2, 1 }, .strings = "\0name\0soname" };
	static const int tags[] = { DT_SYMTAB, DT_STRTAB, DT_HASH };
	static const size_t at[] = { offsetof(struct image, symbols),
				     offsetof(struct image, strings), offsetof(struct image, hash) };
	const ElfW(Addr) linked_at = 0xffffffffff700000;
	struct link_map map = { .l_addr = (uintptr_t)&image - linked_at, .l_ld = image.dynamic };
	struct elf_object object;

	for (size_t i = 0; i < 3; i++)
		image.dynamic[i] = (ElfW(Dyn)){ tags[i], { linked_at + at[i] } };
	image.dynamic[3] = (ElfW(Dyn)){ DT_SONAME, { 6 } }; /* in `strings` */
	image.symbols[1] = (ElfW(Sym)){ .st_name = 1,
					.st_info = STT_OBJECT,
					.st_shndx = 1,
					.st_value = linked_at + offsetof(struct image, hash) };
	assert_true(elf_object_of_handle(&map, &object));
	assert_string_equal(object.soname, "soname");
	assert_ptr_equal(elf_symbol(&object, "name"), image.hash);
	assert_null(elf_symbol(&object, "soname"));
}

static void *search(void *unused)
{
	static const char own;
	uintptr_t wrong = 0;

	for (int i = 0; i < 2000; i++)
		wrong += elf_any_symbol(&own, "pthread_create") == NULL;
	return (void *)wrong;
}

static void test_searches_while_libraries_come_and_go(void **state)
{
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, search, NULL);
	for (int i = 0; i < 200; i++)
		dlclose(dlopen(i % 2 ? LIBRARY_GNU : LIBRARY_SYSV, RTLD_NOW));
	for (int i = 0; i < 4; i++) {
		void *wrong;
		pthread_join(threads[i], &wrong);
		assert_null(wrong);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gnu_hash),
		cmocka_unit_test(test_sysv_hash),
		cmocka_unit_test(test_hash_kinds_are_what_they_claim),
		cmocka_unit_test(test_finds_libc),
		cmocka_unit_test(test_skips_the_object_that_asks),
		cmocka_unit_test(test_what_a_handle_stands_for),
		cmocka_unit_test(test_another_namespace),
		cmocka_unit_test(test_which_file_has_an_address),
		cmocka_unit_test(test_the_function_behind_is_kept),
		cmocka_unit_test(test_an_object_linked_at_a_high_address),
		cmocka_unit_test(test_searches_while_libraries_come_and_go),
	};

	return cmocka_run_group_tests_name("elf_lookup", tests, NULL, NULL);
}
