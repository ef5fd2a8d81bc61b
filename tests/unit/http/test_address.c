#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "http/address.h"

static bool is_local(const char *text)
{
	struct address address;
	struct error err = { 0 };
	if (address_parse(text, &address, &err) < 0)
		fail_msg("%s", err.text);
	return address_is_local(&address);
}

static void test_who_can_reach_it(void **state)
{
	assert_true(is_local("off"));
	assert_true(is_local("127.0.0.1:9400"));
	assert_true(is_local("127.255.0.9:1"));
	assert_true(is_local("[::1]:9400"));
	assert_true(is_local("[::ffff:127.0.0.1]:9400"));
	assert_true(is_local("unix:/run/allot/metrics.sock"));
	assert_false(is_local("0.0.0.0:9400"));
	assert_false(is_local("[::]:9400"));
	assert_false(is_local("10.1.2.3:9400"));
	assert_false(is_local("128.0.0.1:9400"));
	assert_false(is_local("[fd00::1]:9400"));
	assert_false(is_local("[::ffff:10.0.0.1]:9400"));
}

static void test_what_is_no_address(void **state)
{
	static const char *const wrong[] = {
		"",
		"on",
		"9400",
		":9400",
		"127.0.0.1",
		"127.0.0.1:",
		"127.0.0.1:x",
		"127.0.0.1:65536",
		"127.0.0:1",
		"localhost:1",
		"127.0.0.1:-1",
		"127.0.0.1:9400 ",
		"::1:9400",
		"[::1:9400",
		"[::1]9400",
		"[]:9400",
		"[x]:9400",
		"unix:",
		"unix:relative",
		"/run/metrics.sock",
		"[fe80::1%eth0]:9400",
		"http://127.0.0.1:9400",
	};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct address address = { .length = 77 };
		struct error err = { 0 };
		if (address_parse(wrong[i], &address, &err) != -EINVAL)
			fail_msg("'%s' was taken", wrong[i]);
		assert_int_equal(address.length, 77);
		if (!strstr(err.text, "must be off, an address") || strchr(err.text, '\n'))
			fail_msg("'%s'", err.text);
	}
	char path[200] = "unix:/";
	struct address address;
	struct error err = { 0 };
	memset(path + 6, 'x', 150);
	assert_int_equal(address_parse(path, &address, &err), -EINVAL);
	assert_non_null(strstr(err.text, "107 bytes"));
}

static void assert_listens(const char *text, int expected, const char *word)
{
	struct address address;
	struct error err = { 0 };
	int fd = -1;
	assert_int_equal(address_parse(text, &address, &err), 0);
	int r = address_listen(&address, false, &fd, &err);
	if (r != expected || (word && !strstr(err.text, word)))
		fail_msg("%s: %d, '%s'", text, r, err.text);
	if (r == 0)
		close(fd);
}

static void test_a_port_in_use(void **state)
{
	struct address address;
	struct error err = { 0 };
	char text[ADDRESS_TEXT_MAX];
	int fd;
	assert_int_equal(address_parse("127.0.0.1:0", &address, &err), 0);
	assert_int_equal(address_listen(&address, false, &fd, &err), 0);
	address_print(fd, text);
	assert_string_not_equal(text, "127.0.0.1:0");
	assert_listens(text, -EADDRINUSE, text);
	close(fd);
	assert_listens(text, 0, NULL);
	assert_listens("192.0.2.1:9400", -EADDRNOTAVAIL, "192.0.2.1:9400");
}

static void test_the_file_of_a_socket(void **state)
{
	char dir[] = "/tmp/allot-address-XXXXXX", path[64], text[80], printed[ADDRESS_TEXT_MAX];
	struct address address;
	struct error err = { 0 };
	struct stat st;
	int fd;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/s", dir);
	snprintf(text, sizeof(text), "unix:%s", path);
	assert_int_equal(address_parse(text, &address, &err), 0);
	assert_int_equal(address_listen(&address, false, &fd, &err), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	address_print(fd, printed);
	assert_string_equal(printed, text);
	/* Somebody listens: not ours to take. */
	assert_listens(text, -EADDRINUSE, path);
	/* Nobody does any more: a daemon was killed. */
	close(fd);
	assert_int_equal(address_listen(&address, true, &fd, &err), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0666);
	close(fd);
	address_unlink(&address);
	assert_int_equal(stat(path, &st), -1);
	/* A file that is no socket stays. */
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fclose(file);
	assert_listens(text, -EEXIST, "not a socket");
	unlink(path);
	assert_listens("unix:/nowhere/s", -ENOENT, "/nowhere/s");
	rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_who_can_reach_it),
		cmocka_unit_test(test_what_is_no_address),
		cmocka_unit_test(test_a_port_in_use),
		cmocka_unit_test(test_the_file_of_a_socket),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
