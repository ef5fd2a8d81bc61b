/* Locks in a forked child: all are free, and none lies in memory that the kernel does not free. */
#include "../test.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "library/sys/locks.h"

#define COUNT (sizeof(locks) / sizeof(struct sys_lock))

/* The declarations of a lock in the sources, but for those in locks.h. */
#define DECLARATIONS \
	"cd '" LIBRARY_SOURCES "' && grep -rnE --include='*.[ch]' --exclude=locks.h " \
	"'^[[:space:]]*([A-Za-z_]+([(][A-Za-z0-9_]+[)])? )*" \
	"(struct (sys_lock|biased_lock)|pthread_[a-z]+lock_t|pthread_(mutex|cond|once)_t|" \
	"atomic_flag|mtx_t|sem_t) [a-z_]+[^(]*;'"

static bool all_are_free(void)
{
	for (size_t i = 0; i < COUNT; i++)
		if (!sys_trylock((struct sys_lock *)&locks + i))
			return false;
	return true;
}

static void test_a_forked_child_finds_all_free(void **state)
{
	int status;

	assert_true(all_are_free()); /* and holds them now, as other threads would */
	pid_t pid = fork();
	if (pid == 0)
		_exit(!all_are_free());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_false(sys_trylock(&locks.namespaces));
}

/* Each of these is reset together with the data that it guards: locks.h. */
static void test_no_other_lock_lies_elsewhere(void **state)
{
	static const char *const known[] = { "launch/inflight/inflight_record.h", "memory/ptrmap.c",
					     "state/thread_cache.h", "sys/biased.h",
					     "trace/trace_record.h" };
	size_t count[5] = { 0 }, others = 0;
	char line[512];
	FILE *found = popen(DECLARATIONS, "r");

	assert_non_null(found);
	while (fgets(line, sizeof(line), found)) {
		size_t i = 0;
		while (i < 5 && strncmp(line, known[i], strlen(known[i])) != 0)
			i++;
		if (i < 5 && !count[i]++)
			continue;
		others++;
		print_error("a forked child may find this lock held; move it to locks.h: %s", line);
	}
	assert_int_equal(pclose(found), 0);
	assert_int_equal(others, 0);
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(count[i], 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_forked_child_finds_all_free),
		cmocka_unit_test(test_no_other_lock_lies_elsewhere),
	};

	return cmocka_run_group_tests_name("locks", tests, NULL, NULL);
}
