/* One exchange with the daemon: the result for every reply, and that nothing of the exchange stays behind. */
#include "test.h"

#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/time.h>

#include "fake_daemon.h"
#include "library/registration_client.h"
#include "library/sys/sys.h"

static char directory[] = "/tmp/allot-registration-XXXXXX";
static char path[64];
static struct fake_daemon fake;

static int make_directory(void **state)
{
	if (!mkdtemp(directory))
		return -1;
	snprintf(path, sizeof(path), "%s/allot.sock", directory);
	return 0;
}

static int remove_directory(void **state)
{
	unlink(path);
	return rmdir(directory);
}

static unsigned open_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned count = 0;

	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

/* Asks once, with the daemon answering so; checks that errno, descriptors and the signal mask are as before. */
static int ask(enum fake_answer answer, struct registration *r)
{
	sigset_t before, after;
	int error;

	fake.answer = (int)answer;
	unsigned descriptors = open_descriptors();
	sigprocmask(SIG_SETMASK, NULL, &before);
	errno = EDOM;
	error = registration_ask(path, 0, 200 * NS_PER_MS, r);
	assert_int_equal(errno, EDOM);
	sigprocmask(SIG_SETMASK, NULL, &after);
	for (int i = 1; i < 65; i++)
		assert_int_equal(sigismember(&before, i), sigismember(&after, i));
	for (int i = 0; i < 100 && open_descriptors() > descriptors; i++)
		usleep(10000); /* the daemon's end of the connection is in this process too */
	assert_int_equal(open_descriptors(), descriptors);
	return error;
}

static void test_success(void **state)
{
	struct registration r;

	fake_daemon_start(&fake, path, 11);
	assert_int_equal(ask(ANSWER_WELL, &r), 0);
	assert_int_equal(r.slot, 0);
	assert_string_equal(r.message, "");
	assert_string_equal(r.control->tenant_name, "fake");
	assert_int_equal(r.control->epoch, 11);
	/* The maps are the daemon's. */
	fake.control->device[0].quota_bytes = 12345;
	assert_int_equal(r.control->device[0].quota_bytes, 12345);
	r.report->slot[0].device[0].used_bytes = 678;
	assert_int_equal(fake.report->slot[0].device[0].used_bytes, 678);
	assert_int_equal(fake.request[0].magic, REGISTRATION_MAGIC);
	assert_int_equal(fake.request[0].version, REGISTRATION_VERSION);
	assert_int_equal(fake.request[0].pid, getpid());
	assert_int_equal(fake.request[0].previous_epoch, 0);
	registration_unmap(r.control, r.report);
	assert_int_equal(registration_ask(path, 11, NS_PER_S, &r), 0);
	assert_int_equal(fake.request[1].previous_epoch, 11);
	assert_int_equal(r.slot, 1);
	registration_unmap(r.control, r.report);
	registration_unmap(NULL, NULL);
	fake_daemon_stop(&fake);
}

static void test_refusal_has_a_message(void **state)
{
	struct registration r;

	fake_daemon_start(&fake, path, 1);
	assert_int_equal(ask(ANSWER_REFUSAL, &r), -EDQUOT);
	assert_string_equal(r.message, "the tenant is full");
	assert_null(r.control);
	assert_null(r.report);
	fake_daemon_stop(&fake);
}

static void test_bad_answers(void **state)
{
	static const enum fake_answer bad[] = {
		ANSWER_GARBAGE, ANSWER_LONG_GARBAGE, ANSWER_OLD_VERSION, ANSWER_NO_FDS,
		ANSWER_ONE_FD,  ANSWER_THREE_FDS,    ANSWER_BAD_REGION,  ANSWER_BAD_SLOT,
	};
	struct registration r;

	fake_daemon_start(&fake, path, 1);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(ask(bad[i], &r), -EPROTO);
		assert_null(r.control);
		assert_null(r.report);
		assert_string_equal(r.message, "");
	}
	fake_daemon_stop(&fake);
}

static void test_a_silent_daemon(void **state)
{
	struct registration r;

	fake_daemon_start(&fake, path, 1);
	uint64_t begin = sys_now_ns();
	assert_int_equal(ask(ANSWER_SILENCE, &r), -EAGAIN);
	assert_in_range(sys_now_ns() - begin, 150 * NS_PER_MS, 2 * NS_PER_S);
	fake.answer = ANSWER_HANG_UP;
	assert_int_equal(ask(ANSWER_HANG_UP, &r), -ECONNRESET);
	fake_daemon_stop(&fake);
}

static void test_no_daemon(void **state)
{
	struct registration r;

	fake_daemon_start(&fake, path, 1);
	fake_daemon_stop(&fake);
	assert_int_equal(ask(ANSWER_WELL, &r), -ECONNREFUSED); /* the socket of a dead one */
	unlink(path);
	assert_int_equal(ask(ANSWER_WELL, &r), -ENOENT);
}

static void test_no_permission(void **state)
{
	struct registration r;

	if (geteuid() == 0) {
		skip();
		return;
	}
	fake_daemon_start(&fake, path, 1);
	chmod(path, 0);
	assert_int_equal(ask(ANSWER_WELL, &r), -EACCES);
	fake_daemon_stop(&fake);
}

static volatile sig_atomic_t alarms;

static void count_alarm(int number)
{
	alarms++;
}

/* A profiler's timer: no exchange may fail for it, and every tick arrives in the end. */
static void test_signals_do_not_disturb(void **state)
{
	struct itimerval every_ms = { { 0, 1000 }, { 0, 1000 } }, never = { { 0, 0 }, { 0, 0 } };
	struct registration r;

	signal(SIGALRM, count_alarm);
	fake_daemon_start(&fake, path, 1);
	setitimer(ITIMER_REAL, &every_ms, NULL);
	int first = registration_ask(path, 0, NS_PER_S, &r);
	if (!first)
		registration_unmap(r.control, r.report);
	fake.answer = ANSWER_SLOWLY;
	int second = registration_ask(path, 0, NS_PER_S, &r);
	if (!second)
		registration_unmap(r.control, r.report);
	setitimer(ITIMER_REAL, &never, NULL);
	signal(SIGALRM, SIG_DFL);
	fake_daemon_stop(&fake);
	assert_int_equal(first, 0);
	assert_int_equal(second, 0);
	assert_true(alarms > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_success),
		cmocka_unit_test(test_refusal_has_a_message),
		cmocka_unit_test(test_bad_answers),
		cmocka_unit_test(test_a_silent_daemon),
		cmocka_unit_test(test_no_daemon),
		cmocka_unit_test(test_no_permission),
		cmocka_unit_test(test_signals_do_not_disturb),
	};

	return cmocka_run_group_tests_name("registration", tests, make_directory, remove_directory);
}
