/* Answers of HTTP/1.0, whole, cut and wrong. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/containers/engine/engine_http.h"

#define OK "HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n"

/* From memory of just that size, so that a byte too far is seen by the sanitizers. */
static int parse(const char *text, size_t size, size_t *ret_body)
{
	char *copy = calloc(1, size ? size : 1);
	memcpy(copy, text, size);
	int r = engine_http_parse(copy, size, ret_body);
	free(copy);
	return r;
}

static void check(const char *text, int wanted)
{
	size_t body;
	assert_int_equal(parse(text, strlen(text), &body), wanted);
}

static void test_the_body(void **state)
{
	size_t body = 0;
	assert_int_equal(parse(OK "{}", strlen(OK "{}"), &body), 0);
	assert_int_equal(body, strlen(OK));
	assert_int_equal(parse(OK, strlen(OK), &body), 0);
	assert_int_equal(body, strlen(OK));
	/* Lines without a carriage return (RFC 9112, 2.2). */
	assert_int_equal(parse("HTTP/1.1 200 OK\n\nx", 18, &body), 0);
	assert_int_equal(body, 17);
}

static void test_what_is_none(void **state)
{
	check("", -EPROTO);
	check("HTTP/1.0 200", -EPROTO);
	check("HTTP/1.0 404 Not Found\r\n\r\n{}", -ENOENT);
	check("HTTP/1.0 500 No\r\n\r\n{}", -EPROTO);
	check("HTTP/1.0 2x0 OK\r\n\r\n{}", -EPROTO);
	check("HTTP/2.0 200 OK\r\n\r\n{}", -EPROTO);
	check("SSH-2.0-OpenSSH_9.2p1 Debian\r\n", -EPROTO);
	check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n", -EPROTO);
	check("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n..", -EPROTO);
	check("HTTP/1.0 200 OK\r\nA: b", -EPROTO);
}

static void test_cut_anywhere(void **state)
{
	for (size_t n = 0; n < strlen(OK); n++) {
		size_t body;
		assert_int_equal(parse(OK, n, &body), -EPROTO);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_body),
		cmocka_unit_test(test_what_is_none),
		cmocka_unit_test(test_cut_anywhere),
	};
	return cmocka_run_group_tests_name("engine_http", tests, NULL, NULL);
}
