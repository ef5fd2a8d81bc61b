/*
 * The whole library, preloaded into a small program (probe.c) with a fake driver and a fake daemon:
 * how it gets between program and driver, and how a process joins its tenant.
 */
#include "test.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include "fake_daemon.h"
#include "fake_libcuda.h"
#include "library/sys/sys.h"

#define MIB (1ULL << 20)
#define CONTEXT (8 * MIB)

static char directory[] = "/tmp/allot-library-XXXXXX";
static char socket_path[64];
static struct fake_daemon fake;

/* ---- running the probe ---- */

struct probe {
	pid_t pid;
	int in, out;
	char text[8192];
};

struct setting {
	const char *program;
	const char *preload; /* NULL: none */
	const char *socket;  /* NULL: none */
};

static void start_probe(struct probe *p, struct setting s, const char *what)
{
	int in[2], out[2];

	memset(p, 0, sizeof(*p));
	assert_int_equal(pipe2(in, O_CLOEXEC) | pipe2(out, O_CLOEXEC), 0);
	p->pid = fork();
	if (p->pid == 0) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		dup2(out[1], 2);
		setenv("LD_LIBRARY_PATH", DRIVER_DIR, 1);
		unsetenv("ALLOT_SOCKET");
		unsetenv("LD_PRELOAD");
		if (s.preload)
			setenv("LD_PRELOAD", s.preload, 1);
		if (s.socket)
			setenv("ALLOT_SOCKET", s.socket, 1);
		execl(s.program, s.program, what, NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	p->in = in[1];
	p->out = out[0];
}

/* Reads on until the text holds `line`, or 10 s are over, or the probe has ended. */
static bool probe_prints(struct probe *p, const char *line)
{
	for (;;) {
		size_t length = strlen(p->text);
		struct pollfd f = { .fd = p->out, .events = POLLIN };
		if (line && strstr(p->text, line))
			return true;
		if (poll(&f, 1, 10000) <= 0 || length == sizeof(p->text) - 1)
			return false;
		ssize_t n = read(p->out, p->text + length, sizeof(p->text) - 1 - length);
		if (n <= 0)
			return false;
		p->text[length + (size_t)n] = '\0';
	}
}

static void poke(struct probe *p)
{
	assert_int_equal(write(p->in, "x", 1), 1);
}

/* Its exit status, or -signal; the rest of its output is in text. */
static int end_probe(struct probe *p)
{
	int status;

	close(p->in);
	probe_prints(p, NULL);
	close(p->out);
	assert_int_equal(waitpid(p->pid, &status, 0), p->pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void expect(struct setting s, const char *what, const char *text)
{
	struct probe p;

	start_probe(&p, s, what);
	assert_int_equal(end_probe(&p), 0);
	assert_string_equal(p.text, text);
}

/* ---- between program and driver ---- */

static void test_without_a_tenant_all_is_as_without_the_library(void **state)
{
	static const char *const what[] = { "hold", "manners", "proc_address" };

	for (size_t i = 0; i < sizeof(what) / sizeof(what[0]); i++) {
		struct probe plain, preloaded;
		start_probe(&plain, (struct setting){ PROBE, NULL, NULL }, what[i]);
		start_probe(&preloaded, (struct setting){ PROBE, LIBRARY, NULL }, what[i]);
		assert_int_equal(end_probe(&plain), 0);
		assert_int_equal(end_probe(&preloaded), 0);
		/* No helper thread either: no thread of that name blocks SIGTERM. */
		assert_string_equal(plain.text, preloaded.text);
	}
}

static void test_linked(void **state)
{
	expect((struct setting){ PROBE_LINKED_PATH, LIBRARY, NULL }, "linked",
	       "cuMemAlloc_v2 " LIBRARY_NAME "\n"
	       "cuInit 0\n"
	       "cuMemAlloc_v2 without a context 201\n"
	       "RTLD_DEFAULT " LIBRARY_NAME "\n"
	       "RTLD_NEXT " LIBRARY_NAME "\n");
}

static void test_looked_up(void **state)
{
	static const char text[] = "RTLD_DEFAULT before nothing\n"
				   "nvml before nothing\n"
				   "cuMemAlloc_v2 " LIBRARY_NAME "\n"
				   "cuDeviceGetCount libcuda.so.1\n"
				   "absent from this driver nothing\n"
				   "unknown nothing\n"
				   "error said\n"
				   "RTLD_DEFAULT after " LIBRARY_NAME "\n"
				   "RTLD_DEFAULT not hooked libcuda.so.1\n";

	expect((struct setting){ PROBE, LIBRARY, NULL }, "look_up", text);
	expect((struct setting){ PROBE, LIBRARY, socket_path }, "look_up", text);
}

static void test_looked_up_through_the_driver(void **state)
{
	expect((struct setting){ PROBE, LIBRARY, socket_path }, "proc_address",
	       "cuMemAlloc 0 " LIBRARY_NAME "\n"
	       "cuDeviceGetCount 0 libcuda.so.1\n"
	       "cuNone 0 nothing 1\n"
	       "cuGetProcAddress 0 " LIBRARY_NAME "\n");
}

static void test_unknown_entries(void **state)
{
	static const char passed[] = "dlsym libcuda.so.1 0\n"
				     "cuGetProcAddress 0 libcuda.so.1 0\n";

	expect((struct setting){ PROBE, LIBRARY, NULL }, "unknown", passed);
	expect((struct setting){ PROBE, LIBRARY, socket_path }, "unknown",
	       "dlsym " LIBRARY_NAME " 500\n"
	       "cuGetProcAddress 0 nothing 1\n");
	setenv("ALLOT_UNKNOWN", "pass", 1);
	expect((struct setting){ PROBE, LIBRARY, socket_path }, "unknown", passed);
	unsetenv("ALLOT_UNKNOWN");
}

static void test_another_interposer(void **state)
{
	expect((struct setting){ PROBE_LINKED_PATH, OTHER ":" LIBRARY, NULL }, "next",
	       "RTLD_NEXT of the other " LIBRARY_NAME "\n");
	expect((struct setting){ PROBE_LINKED_PATH, LIBRARY ":" OTHER, NULL }, "next",
	       "RTLD_NEXT of the other libcuda.so.1\n");
	expect((struct setting){ PROBE, LIBRARY ":" OTHER, NULL }, "next",
	       "RTLD_NEXT of the other nothing\n");
}

static void test_a_driver_that_was_unloaded(void **state)
{
	expect((struct setting){ PROBE, LIBRARY, NULL }, "reload",
	       "cuInit 0\ncuInit 0\nlook-up " LIBRARY_NAME "\ncuMemGetInfo_v2 201\nmoved 1\n");
}

/* ---- joining a tenant ---- */

static struct setting tenant(void)
{
	return (struct setting){ PROBE, LIBRARY, socket_path };
}

static struct region_slot_device *slot_device(unsigned slot)
{
	return &fake.report->slot[slot].device[0];
}

static bool becomes(const _Atomic uint64_t *word, uint64_t value)
{
	for (int i = 0; i < 200; i++) {
		if (atomic_load(word) == value)
			return true;
		usleep(10000);
	}
	return false;
}

static void test_a_process_joins(void **state)
{
	struct probe p;

	fake_daemon_start(&fake, socket_path, 5);
	start_probe(&p, tenant(), "hold");
	assert_true(probe_prints(&p, "cuMemGetInfo"));
	assert_int_equal(fake.requests, 1);
	assert_int_equal(fake.peer[0], p.pid);
	assert_int_equal(slot_device(0)->used_bytes, CONTEXT + 100 * MIB);
	assert_int_equal(slot_device(0)->context_used_bytes, CONTEXT);
	assert_int_equal(slot_device(0)->denied, 1);
	poke(&p);
	assert_true(probe_prints(&p, "free 0") || true);
	assert_true(becomes(&slot_device(0)->used_bytes, CONTEXT));
	poke(&p);
	assert_int_equal(end_probe(&p), 0);
	assert_int_equal(slot_device(0)->used_bytes, 0);
	assert_string_equal(p.text, "cuInit 0\n"
				    "cuDevicePrimaryCtxRetain 0\n"
				    "alloc 0\n"
				    "too much 2\n"
				    "cuMemGetInfo 0 960495616 1073741824\n"
				    "free 0\n"
				    "release 0\n"
				    "cuMemGetInfo 0 1073741824 1073741824\n");
	fake_daemon_stop(&fake);
}

static bool asks_again(unsigned requests)
{
	for (int i = 0; i < 200; i++) {
		if (fake.requests > requests)
			return true;
		usleep(10000);
	}
	return false;
}

/* While idle, a missing heartbeat has no meaning for a while: the owner's word decides. */
static void test_the_end_of_a_daemon_that_beats_seldom(void **state)
{
	struct probe p;

	fake_daemon_start(&fake, socket_path, 5);
	atomic_store(&fake.control->owner, 77);
	start_probe(&p, tenant(), "hold");
	assert_true(probe_prints(&p, "cuMemGetInfo"));
	assert_int_equal(fake.report->slot[0].heeds_owner, 1);
	fake.beats = false;
	uint64_t begin = sys_now_ns();
	usleep(600000);
	bool asked = fake.requests > 1;
	assert_true(!asked || sys_now_ns() - begin > 2 * NS_PER_S);
	atomic_store(&fake.control->owner, FUTEX_OWNER_DIED);
	assert_true(asks_again(1));
	poke(&p);
	poke(&p);
	assert_int_equal(end_probe(&p), 0);
	fake_daemon_stop(&fake);
}

/* Of an older daemon there is no such word. */
static void test_the_end_of_a_daemon_that_only_beats(void **state)
{
	struct probe p;

	fake_daemon_start(&fake, socket_path, 5);
	start_probe(&p, tenant(), "hold");
	assert_true(probe_prints(&p, "cuMemGetInfo"));
	fake.beats = false;
	assert_true(asks_again(1));
	fake.beats = true;
	poke(&p);
	poke(&p);
	assert_int_equal(end_probe(&p), 0);
	fake_daemon_stop(&fake);
}

static void test_refused(void **state)
{
	struct probe p;

	fake_daemon_start(&fake, socket_path, 5);
	fake.answer = ANSWER_REFUSAL;
	start_probe(&p, tenant(), "hold");
	assert_int_equal(end_probe(&p), 0);
	assert_non_null(strstr(p.text, "no GPU for this process: the tenant is full\n"));
	assert_non_null(strstr(p.text, "cuInit 802\n"));
	assert_int_equal(fake.requests, 1);
	fake.answer = ANSWER_OLD_VERSION;
	start_probe(&p, tenant(), "hold");
	assert_int_equal(end_probe(&p), 0);
	assert_non_null(strstr(p.text, "cuInit 802\n"));
	fake_daemon_stop(&fake);
}

/* The message names gVisor and what to do, not the first thing that gVisor lacks. */
static void test_refused_in_gvisor(void **state)
{
	static const char *const names[] = { "new", "old" };

	for (size_t i = 0; i < 2; i++) {
		struct probe p;
		setenv("GVISOR_NAME", names[i], 1);
		fake_daemon_start(&fake, socket_path, 5);
		start_probe(&p, (struct setting){ PROBE, LIBRARY ":" GVISOR, socket_path }, "hold");
		assert_int_equal(end_probe(&p), 0);
		assert_non_null(strstr(p.text, "no GPU for this process: it runs in gVisor (runsc)"));
		assert_non_null(strstr(p.text, "a RuntimeClass of runc)\n"));
		assert_null(strstr(p.text, "madvise"));
		assert_non_null(strstr(p.text, "cuInit 802\n"));
		assert_int_equal(fake.requests, 0);
		fake_daemon_stop(&fake);
	}
	unsetenv("GVISOR_NAME");
}

static void test_no_daemon_in_time(void **state)
{
	struct probe p;

	unlink(socket_path);
	uint64_t begin = sys_now_ns();
	start_probe(&p, tenant(), "hold");
	assert_int_equal(end_probe(&p), 0);
	/* Built with 1.5 s of patience. */
	assert_in_range(sys_now_ns() - begin, 1400 * NS_PER_MS, 5 * NS_PER_S);
	assert_non_null(strstr(p.text, "no daemon answers at"));
	assert_non_null(strstr(p.text, "cuInit 802\n"));
}

static void test_a_daemon_that_starts_late(void **state)
{
	struct probe p;

	unlink(socket_path);
	start_probe(&p, tenant(), "hold");
	usleep(500000);
	fake_daemon_start(&fake, socket_path, 5);
	assert_true(probe_prints(&p, "cuMemGetInfo 0"));
	assert_int_equal(end_probe(&p), 0);
	/* A daemon that hangs up at once, as a dying one does, is tried again. */
	fake.answer = ANSWER_HANG_UP;
	start_probe(&p, tenant(), "hold");
	usleep(300000);
	fake.answer = ANSWER_WELL;
	assert_true(probe_prints(&p, "cuMemGetInfo 0"));
	assert_int_equal(end_probe(&p), 0);
	assert_true(fake.requests >= 3);
	fake_daemon_stop(&fake);
}

static void test_forked_children_have_slots_of_their_own(void **state)
{
	struct probe p;

	fake_daemon_start(&fake, socket_path, 5);
	start_probe(&p, tenant(), "forked");
	assert_int_equal(end_probe(&p), 0);
	assert_int_equal(fake.requests, 3);
	assert_int_equal(fake.peer[0], p.pid);
	assert_int_not_equal(fake.peer[1], p.pid);
	assert_int_not_equal(fake.peer[1], fake.peer[2]);
	for (int i = 0; i < 3; i++)
		assert_int_equal(fake.request[i].previous_epoch, 0);
	assert_int_equal(slot_device(0)->peak_bytes, 0);
	assert_int_equal(slot_device(1)->peak_bytes, CONTEXT + 100 * MIB);
	assert_int_equal(slot_device(2)->peak_bytes, CONTEXT + 100 * MIB);
	assert_non_null(strstr(p.text, "parent 0 1073741824 0\n"));
	assert_non_null(strstr(p.text, "parent again 0 1073741824 0\n"));
	fake_daemon_stop(&fake);
}

static void test_exec_joins_anew(void **state)
{
	struct probe p;

	fake_daemon_start(&fake, socket_path, 5);
	start_probe(&p, tenant(), "exec_again");
	assert_true(probe_prints(&p, "cuMemGetInfo 0"));
	assert_int_equal(fake.requests, 2);
	assert_int_equal(fake.peer[0], fake.peer[1]);
	assert_int_equal(fake.request[1].previous_epoch, 0);
	assert_int_equal(end_probe(&p), 0);
	fake_daemon_stop(&fake);
}

static void test_leaves_no_trace_in_the_program(void **state)
{
	fake_daemon_start(&fake, socket_path, 5);
	expect(tenant(), "manners",
	       "cuInit 0\ncuDevicePrimaryCtxRetain 0\ndescriptors 0\nmasks differ 0\n"
	       "helper takes SIGTERM 0\n");
	fake_daemon_stop(&fake);
}

static void test_moves_to_a_restarted_daemon(void **state)
{
	struct probe p;

	fake_daemon_start(&fake, socket_path, 5);
	start_probe(&p, tenant(), "hold");
	assert_true(probe_prints(&p, "cuMemGetInfo 0"));
	fake_daemon_stop(&fake);
	usleep(300000);
	fake_daemon_start(&fake, socket_path, 6);
	assert_true(becomes(&slot_device(0)->used_bytes, CONTEXT + 100 * MIB));
	assert_int_equal(fake.request[0].previous_epoch, 5);
	assert_int_equal(fake.report->slot[0].migrated, 1);
	assert_int_equal(slot_device(0)->context_used_bytes, CONTEXT);
	assert_int_equal(slot_device(0)->denied, 1);
	poke(&p);
	assert_true(becomes(&slot_device(0)->used_bytes, CONTEXT));
	poke(&p);
	assert_int_equal(end_probe(&p), 0);
	assert_non_null(strstr(p.text, "release 0\n"));
	fake_daemon_stop(&fake);
}

static int make_directory(void **state)
{
	if (!mkdtemp(directory))
		return -1;
	snprintf(socket_path, sizeof(socket_path), "%s/allot.sock", directory);
	return 0;
}

static int remove_directory(void **state)
{
	unlink(socket_path);
	return rmdir(directory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_a_tenant_all_is_as_without_the_library),
		cmocka_unit_test(test_linked),
		cmocka_unit_test(test_looked_up),
		cmocka_unit_test(test_looked_up_through_the_driver),
		cmocka_unit_test(test_unknown_entries),
		cmocka_unit_test(test_another_interposer),
		cmocka_unit_test(test_a_driver_that_was_unloaded),
		cmocka_unit_test(test_a_process_joins),
		cmocka_unit_test(test_the_end_of_a_daemon_that_beats_seldom),
		cmocka_unit_test(test_the_end_of_a_daemon_that_only_beats),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_refused_in_gvisor),
		cmocka_unit_test(test_no_daemon_in_time),
		cmocka_unit_test(test_a_daemon_that_starts_late),
		cmocka_unit_test(test_forked_children_have_slots_of_their_own),
		cmocka_unit_test(test_exec_joins_anew),
		cmocka_unit_test(test_leaves_no_trace_in_the_program),
		cmocka_unit_test(test_moves_to_a_restarted_daemon),
	};

	/* A build with sanitizers makes the test programs alone. */
	if (access(LIBRARY, R_OK) || access(PROBE, X_OK) || access(OTHER, R_OK)) {
		puts("skip: the library is not built here");
		return TEST_SKIPPED;
	}
	return cmocka_run_group_tests_name("library", tests, make_directory, remove_directory);
}
