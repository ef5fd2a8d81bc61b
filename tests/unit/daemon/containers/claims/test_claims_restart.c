/* Claims after a restart, a reboot or a kill of the daemon, and while their GPU is missing. */
#include "claims_fixture.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void run_shell(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void run_shell(const char *format, ...)
{
	char command[512];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(command, sizeof(command), format, arguments);
	va_end(arguments);
	assert_int_equal(system(command), 0);
}

static void test_terms_survive_restart(void **state)
{
	struct fixture *f = *state;
	struct claim_request request = request_with_all_terms(f);
	struct claim *claim = claim_made(f, &request);
	struct tenant_terms before = *claim_terms(claim);
	uint64_t made_s = claim->made_s;
	claims_restart(f);
	claim = claims_find(f->node->claims, "uid/c");
	assert_non_null(claim);
	assert_same_terms(claim_terms(claim), &before);
	assert_int_equal(claim->made_s, made_s);
	assert_int_equal(claims_count(f->node->claims), 1);
	claims_must_hold(f);
}

/* After a reboot the store is there, and the run directory has no tenants. */
static void test_terms_survive_reboot(void **state)
{
	struct fixture *f = *state;
	struct claim_request request = request_with_all_terms(f);
	struct tenant_terms before = *claim_terms(claim_made(f, &request));
	fixture_stop(f);
	run_shell("rm -r %s/run/claims %s/run/tenants", f->dir, f->dir);
	fixture_start(f);
	struct claim *claim = claims_find(f->node->claims, "uid/c");
	assert_non_null(claim);
	assert_same_terms(claim_terms(claim), &before);
	struct client c;
	client_register(f, client_connect(claim->tenant), 0, &c);
	assert_int_equal(c.reply.status, 0);
	client_close(&c);
	claims_must_hold(f);
}

static void test_changed_terms_are_saved(void **state)
{
	struct fixture *f = *state;
	struct claim_request request = claim_of(f, "cdi/a", 0, 1024, 10, 7);
	request.tenant = "a";
	claim_made(f, &request);
	json_decref(fixture_ok(f, "{\"version\":1,\"op\":\"set\",\"name\":\"a\",\"priority\":5,"
				  "\"elastic\":true,\"devices\":[{\"memory_bytes\":2147483648,"
				  "\"cores_pct\":20,\"cores_limit_pct\":40}]}"));
	struct tenant_terms before = node_find_tenant(f->node, "a")->terms;
	fixture_stop(f);
	run_shell("rm -r %s/run/claims", f->dir);
	fixture_start(f);
	assert_same_terms(&node_find_tenant(f->node, "a")->terms, &before);
	assert_int_equal(before.device[0].promise.quota_bytes, 2 * GIB);
	claims_must_hold(f);
}

/* A claim is parked while its GPU is missing. It keeps its terms, and no other claim gets its key. */
static void test_claim_waits_for_missing_gpu(void **state)
{
	struct fixture *f = *state;
	struct claim_request request = claim_of(f, "a", 1, 1024, 10, 7);
	struct claim_request other = claim_of(f, "b", 0, 1024, 10, 7);
	struct tenant_terms before = *claim_terms(claim_made(f, &request));
	claim_made(f, &other);
	fixture_stop(f);
	fake_gpu.count = 1;
	fixture_start(f);
	struct claim *claim = claims_find(f->node->claims, "a");
	assert_non_null(claim);
	assert_null(claim->tenant);
	assert_non_null(strstr(claim_parked_reason(claim), "000000000002 is not on this node"));
	assert_string_equal(claim_uuid(claim, 0), "GPU-00000000-0000-0000-0000-000000000002");
	assert_non_null(claims_find(f->node->claims, "b")->tenant);
	request = claim_of(f, "a", 0, 1, 1, -1);
	claim_refused(f, &request, EEXIST, "already exists");
	claims_must_hold(f);
	fixture_stop(f);
	fake_gpu.count = 2;
	fixture_start(f);
	claim = claims_find(f->node->claims, "a");
	assert_non_null(claim->tenant);
	assert_same_terms(claim_terms(claim), &before);
	claims_must_hold(f);
	/* A parked claim that is released leaves nothing behind. */
	fixture_stop(f);
	fake_gpu.count = 1;
	fixture_start(f);
	claim_released(f, "a");
	fixture_stop(f);
	fake_gpu.count = 2;
	fixture_start(f);
	assert_int_equal(claims_count(f->node->claims), 1);
	assert_int_equal(f->node->tenant_count, 1);
	claims_must_hold(f);
}

/* Directories that a daemon left when it was killed after a release take no memory from a later claim. */
static void test_leftovers_of_a_release_are_ignored(void **state)
{
	struct fixture *f = *state;
	struct claim_request request = claim_of(f, "a", 0, 6 * 1024, 10, 0);
	claim_made(f, &request);
	fixture_stop(f);
	run_shell("cp -r %s/run/claims %s/before", f->dir, f->dir);
	fixture_start(f);
	claim_released(f, "a");
	request = claim_of(f, "b", 0, 6 * 1024, 10, 0);
	struct tenant_terms terms = *claim_terms(claim_made(f, &request));
	fixture_stop(f);
	run_shell("rm -r %s/run/claims && cp -r %s/before %s/run/claims", f->dir, f->dir, f->dir);
	fixture_start(f);
	assert_null(claims_find(f->node->claims, "a"));
	struct claim *claim = claims_find(f->node->claims, "b");
	assert_non_null(claim->tenant);
	assert_same_terms(claim_terms(claim), &terms);
	claims_must_hold(f);
}

/* ---- a daemon that is killed ---- */

#define KILLS 100

/* Allocates and releases claims until it is killed. Writes a byte to fd after each: '+' allocated, '-' released. */
static void churn(struct fixture *f, int fd, unsigned round)
{
	for (unsigned i = 0;; i++) {
		char key[32];
		struct claim *claim;
		snprintf(key, sizeof(key), "%u/%u", round, i);
		struct claim_request request = claim_of(f, key, i % 2, 64, 1, (int)(i % SLOTS_MAX));
		if (claims_allocate(f->node->claims, &request, &claim, NULL) < 0)
			_exit(1);
		if (write(fd, "+", 1) != 1)
			_exit(1);
		if (i % 4 == 3)
			continue;
		if (claims_release(f->node->claims, key, NULL, NULL) < 0 || write(fd, "-", 1) != 1)
			_exit(1);
	}
}

struct answers {
	unsigned made, released;
};

/*
 * Counts the child's answers until there are `most` or the child has ended. An operation that the kill interrupted may have
 * taken effect without an answer: one more claim, or one more release.
 */
static void count_answers(int fd, struct answers *answers, unsigned most)
{
	char c;
	for (unsigned i = 0; i < most && read(fd, &c, 1) == 1; i++)
		++*(c == '+' ? &answers->made : &answers->released);
}

static void test_daemon_is_killed_at_random_times(void **state)
{
	struct fixture *f = *state;
	unsigned answered = 0;
	srand(1);
	for (unsigned round = 0; round < KILLS; round++) {
		int fds[2];
		struct answers answers = { 0 };
		fixture_stop(f);
		assert_int_equal(pipe(fds), 0);
		pid_t pid = fork();
		if (pid == 0) {
			close(fds[0]);
			fixture_start(f);
			churn(f, fds[1], round);
		}
		close(fds[1]);
		/* Kill it during its start, or after its first answers. */
		struct timespec pause = { .tv_nsec = rand() % 20 * 1000000L };
		count_answers(fds[0], &answers, (unsigned)rand() % 8);
		nanosleep(&pause, NULL);
		kill(pid, SIGKILL);
		int status;
		waitpid(pid, &status, 0);
		assert_true(WIFSIGNALED(status));
		count_answers(fds[0], &answers, UINT_MAX);
		close(fds[0]);
		answered += answers.made;
		fixture_start(f);
		claims_must_hold(f);
		unsigned now = claims_count(f->node->claims);
		unsigned least = answers.made - answers.released;
		if (now + 1 < least || now > least + 1)
			fail_msg("round %u: %u claims, %u were answered", round, now, least);
		/* Make room for the next rounds. */
		for (struct claim *c; (c = claims_first(f->node->claims));) {
			char key[CLAIM_KEY_MAX];
			strcpy(key, claim_terms(c)->claim.key);
			claim_released(f, key);
		}
	}
	assert_true(answered > KILLS);
	assert_int_equal(f->node->tenant_count, 0);
	claims_must_hold(f);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, claims_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_terms_survive_restart),
		TEST(test_terms_survive_reboot),
		TEST(test_changed_terms_are_saved),
		TEST(test_claim_waits_for_missing_gpu),
		TEST(test_leftovers_of_a_release_are_ignored),
		TEST(test_daemon_is_killed_at_random_times),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
