/* Files of state: the old one or the new, never half of one. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/util/state_file.h"

#define MOST 4096

struct place {
	char dir[64], path[96], bad[104], fresh[104];
};

static int setup(void **state)
{
	struct place *p = calloc(1, sizeof(*p));
	strcpy(p->dir, "/tmp/allot-test-XXXXXX");
	if (!mkdtemp(p->dir))
		return -1;
	snprintf(p->path, sizeof(p->path), "%s/file.json", p->dir);
	snprintf(p->bad, sizeof(p->bad), "%s.bad", p->path);
	snprintf(p->fresh, sizeof(p->fresh), "%s.new", p->path);
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	struct place *p = *state;
	unlink(p->path);
	unlink(p->bad);
	unlink(p->fresh);
	rmdir(p->dir);
	free(p);
	return 0;
}

static int put(const struct place *p, int number, struct error *err)
{
	cleanup_json json_t *json = json_pack("{s:i}", "n", number);
	return state_file_write(p->path, json, 0, MOST, false, err);
}

static json_int_t get(const struct place *p)
{
	cleanup_json json_t *json = NULL;
	assert_int_equal(state_file_read(p->path, MOST, &json, NULL), 0);
	return json_integer_value(json_object_get(json, "n"));
}

static void write_text(const struct place *p, const char *text)
{
	FILE *f = fopen(p->path, "w");
	fputs(text, f);
	fclose(f);
}

static void test_there_and_back(void **state)
{
	struct place *p = *state;
	struct error err = { 0 };
	json_t *json = NULL;
	assert_int_equal(state_file_read(p->path, MOST, &json, &err), -ENOENT);
	assert_int_equal(put(p, 1, &err), 0);
	assert_int_equal(put(p, 2, &err), 0);
	assert_int_equal(get(p), 2);
	struct stat st;
	assert_int_equal(stat(p->path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(access(p->fresh, F_OK), -1);
}

static void test_what_cannot_be_written_leaves_the_old_one(void **state)
{
	struct place *p = *state;
	struct error err = { 0 };
	assert_int_equal(put(p, 1, &err), 0);
	/* There is another user's link at the temporary file's name. */
	assert_int_equal(symlink("/etc/passwd", p->fresh), 0);
	assert_int_equal(put(p, 2, &err), -ELOOP);
	assert_int_equal(get(p), 1);
	unlink(p->fresh);
	cleanup_json json_t *large = json_array();
	for (int i = 0; i < MOST; i++)
		json_array_append_new(large, json_integer(i));
	assert_int_equal(state_file_write(p->path, large, 0, MOST, false, &err), -EFBIG);
	assert_int_equal(get(p), 1);
	assert_int_equal(state_file_write(p->path, NULL, 0, MOST, false, &err), -ENOMEM);
}

static void test_what_is_not_ours(void **state)
{
	struct place *p = *state;
	struct error err = { 0 };
	json_t *json = NULL;
	write_text(p, "{\"n\":1");
	assert_int_equal(state_file_read(p->path, MOST, &json, &err), -EINVAL);
	write_text(p, "");
	assert_int_equal(state_file_read(p->path, MOST, &json, &err), -EINVAL);
	write_text(p, "{\"n\":1,\"n\":2}");
	assert_int_equal(state_file_read(p->path, MOST, &json, &err), -EINVAL);
	assert_int_equal(truncate(p->path, MOST + 1), 0);
	assert_int_equal(state_file_read(p->path, MOST, &json, &err), -EFBIG);
	unlink(p->path);
	assert_int_equal(mkfifo(p->path, 0600), 0);
	assert_int_equal(state_file_read(p->path, MOST, &json, &err), -EINVAL);
	unlink(p->path);
	assert_int_equal(symlink("/etc/passwd", p->path), 0);
	assert_int_equal(state_file_read(p->path, MOST, &json, &err), -ELOOP);
	assert_null(json);
}

static void test_set_aside(void **state)
{
	struct place *p = *state;
	write_text(p, "first");
	assert_int_equal(state_file_set_aside(p->path), 0);
	write_text(p, "second");
	assert_int_equal(state_file_set_aside(p->path), 0);
	assert_int_equal(access(p->path, F_OK), -1);
	assert_int_equal(access(p->bad, F_OK), 0);
	assert_int_equal(state_file_set_aside(p->path), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_there_and_back, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_cannot_be_written_leaves_the_old_one,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_is_not_ours, setup, teardown),
		cmocka_unit_test_setup_teardown(test_set_aside, setup, teardown),
	};
	return cmocka_run_group_tests_name("state_file", tests, NULL, NULL);
}
