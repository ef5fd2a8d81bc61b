#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "http/dashboard/access.h"

#define READ "a-token-that-reads"
#define CHANGE "a-token-that-changes"

static char read_file[] = "/tmp/allot-read-XXXXXX", change_file[] = "/tmp/allot-change-XXXXXX";

static void write_token(char *path, const char *token)
{
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, token, strlen(token)), (ssize_t)strlen(token));
	close(fd);
}

static int setup(void **state)
{
	write_token(read_file, READ);
	write_token(change_file, CHANGE);
	return 0;
}

static int teardown(void **state)
{
	unlink(read_file);
	unlink(change_file);
	return 0;
}

static void test_hosts(void **state)
{
	static const char *const plain[] = { "127.0.0.1",    "127.0.0.1:9401", "localhost",
					     "LocalHost:80", "[::1]",          "[::1]:9401",
					     "10.1.2.3:1" };
	static const char *const others[] = { "",
					      "evil.example",
					      "evil.example:9401",
					      "localhost.evil.example",
					      "127.0.0.1.evil.example",
					      "[::1",
					      "[::1]x",
					      "[evil]",
					      "1.2.3",
					      ":9401" };
	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		if (!access_is_plain_host(plain[i]))
			fail_msg("%s", plain[i]);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (access_is_plain_host(others[i]))
			fail_msg("%s", others[i]);
	assert_false(access_is_plain_host(NULL));
	char *long_one = malloc(5001);
	memset(long_one, '1', 5000);
	long_one[5000] = '\0';
	assert_false(access_is_plain_host(long_one));
	free(long_one);
}

static void test_origins(void **state)
{
	assert_true(access_is_own_origin(NULL, "a:1"));
	assert_true(access_is_own_origin("http://a:1", "a:1"));
	assert_true(access_is_own_origin("https://A:1", "a:1"));
	assert_false(access_is_own_origin("http://a:2", "a:1"));
	assert_false(access_is_own_origin("http://evil.example", "a:1"));
	assert_false(access_is_own_origin("null", "a:1"));
	assert_false(access_is_own_origin("http://a:1", NULL));
}

static enum access_verdict reads(const struct access_terms *terms, const char *token,
				 const char *host)
{
	char header[64];
	struct error err = { 0 };
	snprintf(header, sizeof(header), "Bearer %s", token ? token : "");
	return access_may_read(
		terms, &(struct access_request){ token ? header : NULL, host, "http://other" },
		&err);
}

static enum access_verdict changes(const struct access_terms *terms, const char *token,
				   const char *origin)
{
	char header[64];
	struct error err = { 0 };
	snprintf(header, sizeof(header), "Bearer %s", token ? token : "");
	return access_may_change(
		terms, &(struct access_request){ token ? header : NULL, "host:1", origin }, &err);
}

static void test_who_may_what(void **state)
{
	const struct access_terms open = { "none", "none", false };
	const struct access_terms by_socket = { "none", "none", true };
	const struct access_terms both = { read_file, change_file, false };
	const struct access_terms changing = { "none", change_file, false };
	const struct access_terms broken = { "/none/there", change_file, false };

	assert_int_equal(reads(&open, NULL, "127.0.0.1:1"), ACCESS_GRANTED);
	assert_int_equal(reads(&open, NULL, "evil.example"), ACCESS_WRONG_HOST);
	assert_int_equal(reads(&by_socket, NULL, "any"), ACCESS_GRANTED);
	assert_int_equal(changes(&open, NULL, NULL), ACCESS_NO_CHANGES);
	assert_int_equal(changes(&open, READ, NULL), ACCESS_NO_CHANGES);

	/* By a token whatever name the machine has. */
	assert_int_equal(reads(&both, READ, "gpu7.example"), ACCESS_GRANTED);
	assert_int_equal(reads(&both, CHANGE, "gpu7.example"), ACCESS_GRANTED);
	assert_int_equal(reads(&both, NULL, "127.0.0.1"), ACCESS_NEEDS_TOKEN);
	assert_int_equal(reads(&both, "another-token-of-length", "127.0.0.1"), ACCESS_NEEDS_TOKEN);
	assert_int_equal(changes(&both, READ, NULL), ACCESS_NEEDS_TOKEN);
	assert_int_equal(changes(&both, CHANGE, NULL), ACCESS_GRANTED);
	assert_int_equal(changes(&both, CHANGE, "http://host:1"), ACCESS_GRANTED);
	assert_int_equal(changes(&both, CHANGE, "http://evil.example"), ACCESS_WRONG_ORIGIN);

	assert_int_equal(changes(&changing, NULL, NULL), ACCESS_NEEDS_TOKEN);
	assert_int_equal(reads(&changing, NULL, "localhost"), ACCESS_GRANTED);

	assert_int_equal(reads(&broken, READ, "127.0.0.1"), ACCESS_UNREADABLE);
	assert_int_equal(reads(&broken, CHANGE, "127.0.0.1"), ACCESS_GRANTED);
}

static void assert_settings(const struct access_settings *given, const char *says)
{
	struct access_settings settings = *given;
	struct error err = { 0 };
	const char **const all[] = { &settings.web_listen, &settings.web_token_file,
				     &settings.web_change_token_file, &settings.web_tls_certificate,
				     &settings.web_tls_key };
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (!*all[i])
			*all[i] = i ? "none" : "off";
	int r = access_check(&settings, &err);
	if (says ? r >= 0 || !strstr(err.text, says) : r < 0)
		fail_msg("%s: %d: %s", settings.web_listen, r, err.text);
}

#define SETTINGS(...) (&(struct access_settings){ __VA_ARGS__ })

static void test_settings(void **state)
{
	assert_settings(SETTINGS(.web_listen = "off"), NULL);
	assert_settings(SETTINGS(.web_listen = "127.0.0.1:9401"), NULL);
	assert_settings(SETTINGS(.web_listen = "unix:/tmp/x"), NULL);
	assert_settings(SETTINGS(.web_listen = "0.0.0.0:9401"),
			"'0.0.0.0:9401' can be reached from other machines");
	assert_settings(SETTINGS(.web_listen = "0.0.0.0:9401", .web_change_token_file = "/x"),
			"name a web_token_file");
	assert_settings(SETTINGS(.web_listen = "0.0.0.0:9401", .web_token_file = "/x"), NULL);
	assert_settings(SETTINGS(.web_token_file = "x"),
			"web_token_file: 'x': must be a full path, or none");
	assert_settings(SETTINGS(.web_change_token_file = "x"),
			"web_change_token_file: 'x': must be a full path");
	assert_settings(SETTINGS(.web_tls_key = "/x"),
			"web_tls_certificate: must be set too, since web_tls_key is set");
	assert_settings(SETTINGS(.web_tls_certificate = "/x"), "web_tls_key: must be set too");
	assert_settings(SETTINGS(.web_tls_certificate = "/x", .web_tls_key = "/y"), NULL);
}

/* allot-scheduler's changes nothing, and has no setting for it. */
static void test_a_page_without_changes(void **state)
{
	struct access_settings settings = { "127.0.0.1:1", "none", "none", "none", NULL };
	struct error err = { 0 };
	assert_int_equal(access_check(&settings, &err), 0);
	settings.web_listen = "0.0.0.0:1";
	assert_int_equal(access_check(&settings, &err), -EACCES);
	const struct access_terms terms = { read_file, NULL, false };
	assert_int_equal(reads(&terms, READ, "127.0.0.1"), ACCESS_GRANTED);
	assert_int_equal(reads(&terms, CHANGE, "127.0.0.1"), ACCESS_NEEDS_TOKEN);
	assert_int_equal(access_may_change(&terms,
					   &(struct access_request){ "Bearer " READ, NULL, NULL },
					   &err),
			 ACCESS_NO_CHANGES);
}

static void test_a_private_daemon(void **state)
{
	struct access_settings settings = { "127.0.0.1:9401", "none", "none", "none", "none" };
	struct address tcp, path;
	struct error err = { 0 };
	assert_int_equal(address_parse("127.0.0.1:9401", &tcp, NULL), 0);
	assert_int_equal(address_parse("unix:/tmp/x", &path, NULL), 0);
	assert_int_equal(access_check_private(&settings, &tcp, false, &err), 0);
	assert_int_equal(access_check_private(&settings, &path, true, &err), 0);
	assert_true(access_check_private(&settings, &tcp, true, &err) < 0);
	assert_non_null(strstr(err.text, "set web_token_file"));
	settings.web_token_file = "/x";
	assert_int_equal(access_check_private(&settings, &tcp, true, &err), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hosts),
		cmocka_unit_test(test_origins),
		cmocka_unit_test(test_who_may_what),
		cmocka_unit_test(test_settings),
		cmocka_unit_test(test_a_page_without_changes),
		cmocka_unit_test(test_a_private_daemon),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
