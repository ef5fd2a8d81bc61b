/* Lines of the audit log when memory runs out: they are lost, counted and reported, never written in part. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/audit/audit_line.h"
#include "base/log.h"

static unsigned left; /* allocations that succeed */

static void *take(size_t size)
{
	return left && left-- ? malloc(size) : NULL;
}

static json_t *by(void)
{
	return json_pack("{s:s}", "kind", "page");
}

static void test_lines_without_memory_are_lost(void **state)
{
	char path[] = "/tmp/allot-audit-line-XXXXXX", text[4096];
	int fd = mkstemp(path);
	struct audit_file file;
	assert_true(fd >= 0);
	log_set_level(0);
	json_set_alloc_funcs(take, free);
	audit_file_open(&file, path, "lost_total");
	unsigned lost = 0;
	for (unsigned most = 0; file.lines == 0; most++) {
		assert_true(most < 1000);
		left = UINT32_MAX;
		json_t *actor = by(), *what = json_pack("{s:s}", "tenant", "one");
		file.unreported = 0;
		left = most;
		audit_line_write(&file, "daemon", "pause", actor, what);
		lost += !file.lines;
	}
	left = UINT32_MAX;
	assert_true(lost > 3);
	assert_int_equal(file.lost, lost);
	text[pread(fd, text, sizeof(text) - 1, 0)] = '\0';
	json_t *line = json_loads(text, 0, NULL);
	assert_int_equal(json_object_size(line), 5);
	json_decref(line);
	/* The caller had no memory either. */
	audit_line_write(&file, "daemon", "pause", NULL, json_object());
	assert_int_equal(file.unreported, 1);
	file.unreported = 0;
	audit_line_write(&file, "daemon", "pause", by(), NULL);
	assert_int_equal(file.unreported, 1);
	audit_line_write(&file, "daemon", "resume", by(), json_object());
	assert_int_equal(file.unreported, 0);
	assert_int_equal(file.lines, 3);
	audit_file_close(&file);
	close(fd);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines_without_memory_are_lost),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
