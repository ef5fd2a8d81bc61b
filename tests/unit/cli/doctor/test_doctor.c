/* What the doctor's parts do by themselves: findings in words, and files of a machine below another root. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/doctor/gather.h"
#include "cli/doctor/host.h"
#include "cli/doctor/judge/finding.h"

/* ---- findings ---- */

static const char *written(const struct findings *findings, int width)
{
	static char text[2048];
	FILE *out = fmemopen(text, sizeof(text), "w");

	findings_write(findings, width, out);
	fclose(out);
	return text;
}

static void test_words(void **state)
{
	struct findings f = { 0 };

	assert_int_equal(findings_worst(&f), FINDING_OK);
	findings_add(&f, FINDING_OK, "kernel", "Linux %d", 6);
	finding_set_remedy(findings_add(&f, FINDING_PROBLEM, "driver", "none"), "install %s", "one");
	finding_set_remedy(NULL, "nothing");
	findings_add(&f, FINDING_NOTE, "x", "of\nothers \033[1m");
	assert_string_equal(written(&f, 100), "ok       kernel             Linux 6\n"
					      "problem  driver             none\n"
					      "                         -> install one\n"
					      "note     x                  of?others ?[1m\n");
	assert_int_equal(findings_worst(&f), FINDING_PROBLEM);
	assert_int_equal(findings_count(&f, FINDING_PROBLEM), 1);
	assert_int_equal(findings_count(&f, FINDING_WARNING), 0);
	json_t *json = findings_json(&f);
	char *text = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS);
	assert_non_null(strstr(text,
			       "{\"check\":\"driver\",\"level\":\"problem\",\"remedy\":\"install "
			       "one\",\"what\":\"none\"}"));
	assert_non_null(strstr(text, "\"remedy\":null,\"what\":\"Linux 6\""));
	assert_non_null(strstr(text, "\"version\":1,\"worst\":\"problem\""));
	free(text);
	json_decref(json);
	findings_free(&f);
}

static void test_wraps_at_spaces(void **state)
{
	struct findings f = { 0 };

	findings_add(&f, FINDING_OK, "a", "aaaa bbbb cccc dddd eeee ffff gggg");
	assert_string_equal(written(&f, 28 + 25),
			    "ok       a                  aaaa bbbb cccc dddd eeee\n"
			    "                            ffff gggg\n");
	/* A word that is too long for a line stays whole, and a terminal that is too narrow is not asked. */
	findings_free(&f);
	findings_add(&f, FINDING_OK, "a", "/a/path/that/is/longer/than/a/line x");
	assert_string_equal(written(&f, 1),
			    "ok       a                  /a/path/that/is/longer/than/a/line\n"
			    "                            x\n");
	findings_free(&f);
}

static void test_many(void **state)
{
	struct findings f = { 0 };
	char much[2 * FINDING_TEXT_MAX];

	memset(much, 'x', sizeof(much) - 1);
	much[sizeof(much) - 1] = '\0';
	for (int i = 0; i < 1000; i++)
		finding_set_remedy(findings_add(&f, FINDING_OK, much, "%s", much), "%s", much);
	assert_int_equal(f.count, 1000);
	assert_int_equal(strlen(f.list[999].what), FINDING_TEXT_MAX - 1);
	findings_free(&f);
}

/* ---- the machine's files ---- */

static char root[64];

static void make_file(const char *path, const char *text)
{
	char at[256];

	snprintf(at, sizeof(at), "%s%s", root, path);
	FILE *file = fopen(at, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void make_directory(const char *path)
{
	char at[256];

	snprintf(at, sizeof(at), "%s%s", root, path);
	assert_int_equal(mkdir(at, 0700), 0);
}

static void make_link(const char *target, const char *path)
{
	char at[256];

	snprintf(at, sizeof(at), "%s%s", root, path);
	assert_int_equal(symlink(target, at), 0);
}

static int make_root(void **state)
{
	strcpy(root, "/tmp/allot-test-doctor-XXXXXX");
	assert_non_null(mkdtemp(root));
	make_directory("/usr");
	make_directory("/usr/lib");
	make_directory("/etc");
	make_link("usr/lib", "/lib");
	make_file("/usr/lib/libcuda.so.580.1", "library");
	make_link("libcuda.so.580.1", "/usr/lib/libcuda.so.1");
	make_link("/etc/alternatives", "/usr/lib/other");
	make_link("../../lib/libcuda.so.1", "/etc/up");
	make_link("/etc/loop", "/etc/loop");
	make_link("../../../../../../etc/hostname", "/etc/out");
	make_file("/etc/hostname", "the machine's");
	return 0;
}

static int remove_root(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -r %s", root);
	return system(command);
}

static void resolves(const char *path, const char *expected)
{
	struct host host = { .root = root };
	char at[256];

	host_resolve(&host, path, at, sizeof(at));
	assert_string_equal(at, expected);
}

static void test_links_stay_below_the_root(void **state)
{
	resolves("/lib/libcuda.so.1", "/usr/lib/libcuda.so.580.1");
	resolves("/usr/lib/libcuda.so.580.1", "/usr/lib/libcuda.so.580.1");
	resolves("/usr/lib/other", "/etc/alternatives");
	resolves("/etc/up", "/usr/lib/libcuda.so.580.1");
	resolves("/etc/out", "/etc/hostname");
	resolves("/etc/loop", "/etc/loop");
	resolves("/not/there", "/not/there");
}

static void test_reads(void **state)
{
	struct host host = { .root = root };
	char text[4];
	size_t size;

	assert_false(host_is_local(&host));
	assert_true(host_has(&host, "/lib/libcuda.so.1"));
	assert_false(host_has(&host, "/usr/lib/other"));
	assert_false(host_has(&host, "/etc/loop"));
	assert_int_equal(host_read(&host, "/etc/out", text, sizeof(text)), 3);
	assert_string_equal(text, "the");
	assert_int_equal(host_read(&host, "/etc/none", text, sizeof(text)), -2);
	assert_string_equal(text, "");
	char *all = host_read_all(&host, "/etc/out", &size);
	assert_string_equal(all, "the machine's");
	assert_int_equal(size, strlen(all));
	free(all);
	assert_null(host_read_all(&host, "/etc", &size));
}

static bool count(void *data, const char *name)
{
	assert_string_not_equal(name, "..");
	return ++*(unsigned *)data < 3;
}

static void test_entries(void **state)
{
	struct host host = { .root = root };
	unsigned n = 0;

	host_each(&host, "/lib", count, &n);
	assert_int_equal(n, 3);
	host_each(&host, "/none", count, &n);
	assert_int_equal(n, 3);
	/* It was told to stop. */
	n = 0;
	host_each(&host, "/etc", count, &n);
	assert_int_equal(n, 3);
}

/* ---- the kernel ---- */

static const struct finding *check_kernel(struct doctor *doctor, const char *version,
					  const char *release)
{
	*doctor = (struct doctor){ .host = { .root = root } };
	make_file("/proc/version", version);
	make_file("/proc/sys/kernel/osrelease", release);
	doctor_check_system(doctor);
	assert_string_equal(doctor->findings.list[0].name, "kernel");
	return &doctor->findings.list[0];
}

static void test_kernels(void **state)
{
	static const char *const gvisors[] = {
		"Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016\n",
		"Linux version 4.19.0-gvisor #1 SMP Sun Jan 10 15:06:54 PST 2016\n",
		"Linux version 6.1.0-gvisor #1 SMP another day\n",
	};
	struct doctor d;

	make_directory("/proc");
	make_directory("/proc/sys");
	make_directory("/proc/sys/kernel");
	for (size_t i = 0; i < sizeof(gvisors) / sizeof(gvisors[0]); i++) {
		const struct finding *f = check_kernel(&d, gvisors[i], "6.1.0-gvisor\n");
		assert_int_equal(f->level, FINDING_PROBLEM);
		assert_non_null(strstr(f->what, "gVisor (runsc)"));
		assert_non_null(strstr(f->remedy, "RuntimeClass of runc"));
		findings_free(&d.findings);
	}
	const struct finding *f = check_kernel(&d, "Linux version 6.1.0 (x@y) (gcc) #1 SMP Debian\n",
					       "6.1.0\n");
	assert_int_equal(f->level, FINDING_OK);
	assert_string_equal(f->what, "Linux 6.1.0");
	findings_free(&d.findings);
	f = check_kernel(&d, "Linux version 4.4.0-21-generic (x@y) #37-Ubuntu\n",
			 "4.4.0-21-generic\n");
	assert_int_equal(f->level, FINDING_PROBLEM);
	assert_non_null(strstr(f->what, "is too old"));
	findings_free(&d.findings);
}

/* ---- libraries ---- */

/* An entry of glibc's sysdeps/generic/dl-cache.h: flags, name, path, OS version, hardware capabilities. */
struct cache_entry {
	int32_t flags;
	uint32_t name, path, os_version;
	uint64_t hwcap;
};

static void test_skips_libraries_of_32_bits(void **state)
{
	static const char strings[] = "libcuda.so.1\0/usr/lib/i386-linux-gnu/libcuda.so.1\0"
				      "/usr/lib/x86_64-linux-gnu/libcuda.so.1";
	const uint32_t begin = 48 + 2 * sizeof(struct cache_entry);
	const struct cache_entry entries[] = { { 0, begin, begin + 13, 0, 0 },
					       { 0, begin, begin + 50, 0, 0 } };
	const uint32_t header[7] = { 2, sizeof(strings) };
	const struct host host = { root };
	char path[PATH_MAX];

	assert_false(gather_library(&host, "libcuda.so.1", path));
	snprintf(path, sizeof(path), "%s/etc/ld.so.cache", root);
	FILE *file = fopen(path, "w");
	fputs("glibc-ld.so.cache1.1", file);
	fwrite(header, sizeof(header), 1, file);
	fwrite(entries, sizeof(entries), 1, file);
	fwrite(strings, sizeof(strings), 1, file);
	fclose(file);
	assert_true(gather_library(&host, "libcuda.so.1", path));
	assert_string_equal(path, "/usr/lib/x86_64-linux-gnu/libcuda.so.1");
	assert_false(gather_library(&host, "libnvidia-ml.so.1", path));
}

/* ---- a program's version ---- */

static int first_wait_ms, last_wait_ms;

/* In place of libc's, to see how long the doctor would wait. */
int poll(struct pollfd *fds, nfds_t count, int limit_ms)
{
	const struct timespec limit = { .tv_sec = limit_ms / 1000,
					.tv_nsec = limit_ms % 1000 * 1000000L };

	if (!first_wait_ms)
		first_wait_ms = limit_ms;
	last_wait_ms = limit_ms;
	return ppoll(fds, count, &limit, NULL);
}

static void test_a_slow_program(void **state)
{
	char path[4096], version[FACT_NAME_MAX];

	make_file("/usr/slow", "#!/bin/sh\nfor one in 1 . 2; do printf %s $one; sleep 0.1; done\n");
	snprintf(path, sizeof(path), "%s/usr/slow", root);
	assert_int_equal(chmod(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/usr:%s", root, getenv("PATH"));
	setenv("PATH", path, 1);
	gather_program_version("slow", version);
	assert_string_equal(version, "1.2");
	/* All waits together have a limit, not each. */
	assert_in_range(first_wait_ms, 1000, 5000);
	assert_true(last_wait_ms <= first_wait_ms - 200);
}

static void test_a_program_that_cannot_be_executed(void **state)
{
	char path[4096], version[FACT_NAME_MAX];

	make_directory("/usr-1.2.3");
	make_file("/usr-1.2.3/broken", "#!/nowhere/interpreter\n");
	snprintf(path, sizeof(path), "%s/usr-1.2.3/broken", root);
	assert_int_equal(chmod(path, 0700), 0);
	gather_program_version(path, version);
	assert_string_equal(version, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_wraps_at_spaces),
		cmocka_unit_test(test_many),
		cmocka_unit_test_setup_teardown(test_links_stay_below_the_root, make_root,
						remove_root),
		cmocka_unit_test_setup_teardown(test_reads, make_root, remove_root),
		cmocka_unit_test_setup_teardown(test_entries, make_root, remove_root),
		cmocka_unit_test_setup_teardown(test_kernels, make_root, remove_root),
		cmocka_unit_test_setup_teardown(test_skips_libraries_of_32_bits, make_root,
						remove_root),
		cmocka_unit_test_setup_teardown(test_a_slow_program, make_root, remove_root),
		cmocka_unit_test_setup_teardown(test_a_program_that_cannot_be_executed, make_root,
						remove_root),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
