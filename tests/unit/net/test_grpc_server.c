/* The gRPC server: unary calls, wrong headers and messages, and streams of answers. */
#include <stdlib.h>
#include <string.h>

#include "grpc_peer.h"

static void test_unary_calls(void **state)
{
	const size_t sizes[] = { 0, 1, 1000, 16384, 65530, LIMIT_BYTES };
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		check_echo(sizes[i]);
}

static void check_refused(const char *method, size_t size, enum grpc_status status, const char *text)
{
	uint8_t *message = calloc(1, size + 1);
	struct grpc_reply r = call_unary(method, message, size);
	assert_int_equal(r.status, status);
	assert_string_equal(r.text, text);
	assert_null(r.message);
	free(message);
}

static void test_refused_calls(void **state)
{
	check_refused("/test.Test/Refuse", 0, GRPC_FAILED_PRECONDITION,
		      "no: 5 % of \xc3\xbc\nare gone");
	check_refused("/test.Test/None", 3, GRPC_UNIMPLEMENTED, "this server has no such method");
	check_refused("/", 0, GRPC_UNIMPLEMENTED, "this server has no such method");
	check_refused("/test.Test/Forget", 0, GRPC_INTERNAL,
		      "internal error: the method gave no answer");
	/* The answer comes before the request is complete, and ends it. */
	check_refused("/test.Test/Echo", LIMIT_BYTES + 1, GRPC_RESOURCE_EXHAUSTED,
		      "a message of 65537 bytes: must be at most 65536");
	check_refused("/test.Test/None", 10 << 20, GRPC_UNIMPLEMENTED,
		      "this server has no such method");
	check_echo(10);
}

/* Older kubelets send the path of the socket as the authority. */
static void test_socket_path_as_authority(void **state)
{
	struct peer *p = peer_new(false);
	struct body b = { 0 };
	nghttp2_nv headers[ALL_HEADERS];
	fill_headers(headers, "/test.Test/Echo");
	headers[3] = header(":authority", "/var/lib/kubelet/device-plugins/allot-gpu.sock");
	struct stream *s = peer_call(p, 0, headers, ALL_HEADERS, &b);
	PEER_UNTIL(p, s->is_closed);
	assert_string_equal(s->http_status, "200");
	assert_string_equal(s->grpc_status, "0");
	peer_free(p);
}

static void check_headers(unsigned which, nghttp2_nv other, const char *http_status,
			  const char *grpc_status, uint32_t code)
{
	struct peer *p = peer_new(false);
	struct body b = { 0 };
	nghttp2_nv headers[ALL_HEADERS + 1];
	fill_headers(headers, "/test.Test/Echo");
	headers[ALL_HEADERS] = header("x-other", "1");
	headers[which] = other;
	struct stream *s = peer_call(p, 0, headers, ALL_HEADERS + 1, &b);
	PEER_UNTIL(p, s->is_closed);
	assert_string_equal(s->http_status, http_status);
	assert_string_equal(s->grpc_status, grpc_status);
	assert_int_equal(s->code, code);
	peer_free(p);
}

static void test_wrong_headers(void **state)
{
	static char longest[GRPC_TEXT_MAX * 20];
	memset(longest, 'x', sizeof(longest) - 1);
	check_headers(0, header(":method", "GET"), "415", "2", NGHTTP2_NO_ERROR);
	check_headers(4, header("content-type", "text/plain"), "415", "2", NGHTTP2_NO_ERROR);
	check_headers(4, header("x-none", "y"), "415", "2", NGHTTP2_NO_ERROR);
	check_headers(2, header("x-path", "y"), "", "", NGHTTP2_PROTOCOL_ERROR);
	check_headers(6, header(":path", "/test.Test/Watch"), "", "", NGHTTP2_PROTOCOL_ERROR);
	check_headers(6, header("x-long", longest), "", "", NGHTTP2_INTERNAL_ERROR);
	check_headers(6, header("grpc-timeout", "soon"), "200", "13", NGHTTP2_NO_ERROR);
	check_headers(6, header("grpc-timeout", "20S"), "200", "0", NGHTTP2_NO_ERROR);
	check_echo(10);
}

static void check_body(const char *data, size_t size, const char *grpc_status)
{
	struct peer *p = peer_new(false);
	struct body b = { .data = data, .size = size };
	nghttp2_nv headers[ALL_HEADERS];
	fill_headers(headers, "/test.Test/Echo");
	struct stream *s = peer_call(p, 0, headers, ALL_HEADERS, &b);
	PEER_UNTIL(p, s->is_closed);
	assert_string_equal(s->http_status, "200");
	assert_string_equal(s->grpc_status, grpc_status);
	peer_free(p);
}

static void test_wrong_messages(void **state)
{
	check_body("\0\0\0\0\0", 5, "0");
	check_body("", 0, "13");
	check_body("\0\0\0", 3, "13");
	check_body("\0\0\0\0\4abc", 8, "13");
	check_body("\0\0\0\0\1ab", 7, "13");
	check_body("\1\0\0\0\1a", 6, "12");
	check_body("\0\xff\xff\xff\xff", 5, "8");
}

/* ---- streams of answers ---- */

static void test_streams(void **state)
{
	struct peer *p = peer_new(false), *q = peer_new(false);
	struct body b[4] = { 0 };
	struct stream *s = peer_watch(p, 0, &b[0], NULL), *t = peer_watch(p, 1, &b[1], NULL);
	struct stream *u = peer_watch(q, 0, &b[2], NULL);
	PEER_UNTIL(p, s->messages && t->messages);
	PEER_UNTIL(q, u->messages);
	publish_numbers(1);
	PEER_UNTIL(p, s->last == 1 && t->last == 1);
	PEER_UNTIL(q, u->last == 1);
	/* One stream is cancelled; other streams and calls go on. */
	nghttp2_submit_rst_stream(p->session, 0, s->id, NGHTTP2_CANCEL);
	peer_send(p);
	wait_for_count(&ended_watch_count, 1);
	check_echo(100);
	nghttp2_submit_ping(p->session, 0, NULL);
	PEER_UNTIL(p, p->has_pong && p->has_settings);
	publish_numbers(1);
	PEER_UNTIL(p, t->last == 2);
	PEER_UNTIL(q, u->last == 2);
	peer_free(p);
	wait_for_count(&ended_watch_count, 2);
	peer_free(q);
	wait_for_count(&ended_watch_count, 3);
}

/* A peer that reads slowly gets the newest message, not all. A peer that stops reading is disconnected. */
static void test_slow_reader_gets_newest_message(void **state)
{
	struct peer *p = peer_new(true);
	struct body b = { 0 };
	struct stream *s = peer_watch(p, 0, &b, NULL);
	PEER_UNTIL(p, p->has_settings && s->size >= 100);
	publish_numbers(50);
	/* Enlarge the window only when it is used up, so that in the end it is too small for another message. */
	for (unsigned i = 0; i < 400 && !s->is_closed && s->last < 50; i++) {
		if (nghttp2_session_get_stream_local_window_size(p->session, s->id) <= 0)
			nghttp2_submit_window_update(p->session, 0, s->id, 8192);
		peer_turn(p, 10);
	}
	assert_int_equal(s->last, 50);
	assert_true(s->messages < 10);
	publish_numbers(1);
	for (unsigned i = 0; i < 4; i++)
		publish_numbers(1);
	PEER_UNTIL(p, s->is_closed || p->is_ended);
	wait_for_count(&ended_watch_count, 1);
	peer_free(p);
}

static void test_timeout_of_a_call(void **state)
{
	struct peer *p = peer_new(false);
	struct body b = { 0 };
	struct stream *s = peer_watch(p, 0, &b, "200m");
	PEER_UNTIL(p, s->is_closed);
	assert_int_equal(s->messages, 1);
	assert_string_equal(s->grpc_status, "4");
	wait_for_count(&ended_watch_count, 1);
	peer_free(p);
}

static void test_server_stops_during_a_stream(void **state)
{
	struct peer *p = peer_new(false);
	struct body b = { 0 };
	struct stream *s = peer_watch(p, 0, &b, NULL);
	PEER_UNTIL(p, s->messages);
	server_teardown(NULL);
	PEER_UNTIL(p, p->has_goaway);
	assert_int_equal(atomic_load(&ended_watch_count), 1);
	peer_free(p);
	server_setup(NULL);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, server_setup, server_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_unary_calls),
		TEST(test_refused_calls),
		TEST(test_socket_path_as_authority),
		TEST(test_wrong_headers),
		TEST(test_wrong_messages),
		TEST(test_streams),
		TEST(test_slow_reader_gets_newest_message),
		TEST(test_timeout_of_a_call),
		TEST(test_server_stops_during_a_stream),
	};
	return cmocka_run_group_tests_name("grpc server", tests, NULL, NULL);
}
