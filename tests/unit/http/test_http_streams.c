/* The streams of the HTTP server: answers that are sent in parts over a long time. */
#include "http_scene.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct server_part *make_part(char letter, size_t size)
{
	struct server_part *part = server_part_new(size);
	assert_non_null(part);
	memset(server_part_bytes(part), letter, size);
	return part;
}

static int begin_stream(struct scene *s, unsigned number)
{
	int fd = connect_client(s);
	send_text(fd, "GET /stream HTTP/1.1\r\n" HOST);
	run_loop(s, 50);
	assert_non_null(s->stream[number]);
	return fd;
}

static size_t count_letter(const char *text, char letter)
{
	size_t count = 0;
	for (; *text; text++)
		count += *text == letter;
	return count;
}

#define PART_BYTES ((size_t)200000) /* far more than the server buffers of an answer */

static void test_parts_are_complete_and_in_order(void **state)
{
	struct scene *s = *state;
	static const char letters[] = "QZW";
	int fd[2] = { begin_stream(s, 0), begin_stream(s, 1) };
	size_t length;
	bool is_closed;
	for (unsigned i = 0; letters[i]; i++) {
		struct server_part *part = make_part(letters[i], PART_BYTES);
		for (unsigned k = 0; k < 2; k++)
			assert_int_equal(server_stream_send(s->stream[k], part), 0);
		/* A stream does not queue a second part. */
		assert_int_equal(server_stream_send(s->stream[0], part), -EAGAIN);
		server_part_free(part);
		for (unsigned k = 0; k < 2; k++) {
			char *text = receive(s, fd[k], &length, &is_closed);
			const char *body = i ? text : strstr(text, "\r\n\r\n");
			assert_int_equal(count_letter(body, letters[i]), PART_BYTES);
			assert_false(is_closed);
			free(text);
		}
	}
	/* The server notices a closed connection when it sends the next part. */
	close(fd[0]);
	run_loop(s, 20);
	for (unsigned i = 0; i < 100 && !s->streams_ended; i++) {
		struct server_part *part = make_part('x', PART_BYTES);
		if (s->stream[0])
			server_stream_send(s->stream[0], part);
		server_part_free(part);
		run_loop(s, 10);
	}
	assert_int_equal(s->streams_ended, 1);
	assert_null(s->stream[0]);
	assert_non_null(s->stream[1]);
	assert_int_equal(server_connections(s->server), 1);
	close(fd[1]);
}

/* A stream without new parts takes no CPU time and stays open. The server may stop while a part is being sent. */
static void test_quiet_stream_stays_open(void **state)
{
	struct scene *s = *state;
	int fd = begin_stream(s, 0);
	unsigned steps = 0;
	uint64_t end_ns = clock_now_ns() + SERVER_DEADLINE_NS + NSEC_PER_SEC;
	for (; clock_now_ns() < end_ns; steps++)
		loop_step(s->loop, 500);
	assert_in_range(steps, 1, 60); /* checks for connections past their deadline */
	assert_int_equal(s->streams_ended, 0);
	struct server_part *part = make_part('y', PART_BYTES);
	assert_int_equal(server_stream_send(s->stream[0], part), 0);
	server_part_free(part);
	close(fd);
}

static void test_slow_reader_is_disconnected(void **state)
{
	struct scene *s = *state;
	int slow = begin_stream(s, 0), fd = begin_stream(s, 1);
	uint64_t began_ns = clock_now_ns(), last_ns = began_ns;
	unsigned received = 0;
	char buffer[65536];
	while (!s->streams_ended && clock_now_ns() - began_ns < 20 * NSEC_PER_SEC) {
		struct server_part *part = make_part('z', PART_BYTES);
		for (unsigned i = 0; i < 2; i++)
			if (s->stream[i] && !server_stream_send(s->stream[i], part))
				last_ns = i ? last_ns : clock_now_ns();
		server_part_free(part);
		run_loop(s, 2);
		for (ssize_t n; (n = recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT)) > 0;)
			received += n > 0;
		run_loop(s, 20);
	}
	/* The slow client did not receive one part before the deadline. The other stream went on. */
	assert_int_equal(s->streams_ended, 1);
	assert_null(s->stream[0]);
	assert_true(clock_now_ns() - last_ns >= SERVER_DEADLINE_NS);
	assert_true(received > 10);
	assert_non_null(s->stream[1]);
	close(slow);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_parts_are_complete_and_in_order, scene_setup,
						scene_teardown),
		cmocka_unit_test_setup_teardown(test_quiet_stream_stays_open, scene_setup,
						scene_teardown),
		cmocka_unit_test_setup_teardown(test_slow_reader_is_disconnected, scene_setup,
						scene_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
