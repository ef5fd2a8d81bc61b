/* Asking in the background: sockets that answer, that hang, that talk nonsense, that are not there. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "daemon/containers/engine/engine_names.h"

#define ID "3f4c1a0b9d8e3f4c1a0b9d8e3f4c1a0b9d8e3f4c1a0b9d8e3f4c1a0b9d8e3f4c"
#define ANSWER \
	"HTTP/1.0 200 OK\r\n\r\n{\"Id\":\"" ID "\",\"Name\":\"/" \
	"web\",\"Config\":{\"Image\":\"i\"}}"

/* A server with one answer for every client. Without an answer it accepts connections and sends nothing. */
struct server {
	char path[96];
	int fd;
	const char *answer;
	bool is_endless; /* the answer again and again */
	pthread_t thread;
	atomic_uint asked;
	char request[256];
};

static void answer_one(struct server *s, int fd)
{
	ssize_t n = recv(fd, s->request, sizeof(s->request) - 1, 0);
	s->request[n > 0 ? n : 0] = '\0';
	do
		n = send(fd, s->answer, strlen(s->answer), MSG_NOSIGNAL);
	while (s->is_endless && n > 0);
	close(fd);
}

static void *serve(void *data)
{
	struct server *s = data;
	int fd;
	while ((fd = accept(s->fd, NULL, NULL)) >= 0) {
		atomic_fetch_add(&s->asked, 1);
		if (s->answer)
			answer_one(s, fd); /* else it stays open, for ever as far as anyone knows */
	}
	return NULL;
}

static void server_start(struct server *s, const char *dir, const char *answer, bool is_endless)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	memset(s, 0, sizeof(*s));
	snprintf(s->path, sizeof(s->path), "%s/s.sock", dir);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", s->path);
	s->answer = answer;
	s->is_endless = is_endless;
	s->fd = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(s->fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(s->fd, 16), 0);
	assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void server_stop(struct server *s)
{
	shutdown(s->fd, SHUT_RDWR);
	pthread_join(s->thread, NULL);
	close(s->fd);
	unlink(s->path);
}

struct scene {
	char dir[64];
	struct loop *loop;
	struct engine_names *names;
	unsigned answers;
	bool is_known;
	struct engine_name name;
};

static void answered(void *data, const char *id, const struct engine_name *name)
{
	struct scene *s = data;
	assert_string_equal(id, ID);
	s->answers++;
	s->is_known = name != NULL;
	if (name)
		s->name = *name;
}

static int setup(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));
	strcpy(s->dir, "/tmp/allot-test-XXXXXX");
	if (!mkdtemp(s->dir) || loop_new(&s->loop, NULL) < 0)
		return -1;
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;
	loop_free(s->loop);
	rmdir(s->dir);
	free(s);
	return 0;
}

/* `kind`: the kind of engine to which the one socket in the scene's directory belongs. */
static void names_start(struct scene *s, const char *kind)
{
	struct engines engines;
	char text[128];
	snprintf(text, sizeof(text), "%s:%s/s.sock", kind, s->dir);
	assert_int_equal(engines_parse(text, &engines, NULL), 0);
	assert_int_equal(engine_names_start(s->loop, &engines, answered, s, &s->names, NULL), 0);
	assert_non_null(s->names);
}

static bool ask(struct scene *s)
{
	static const struct container c = { .engine = "container", .id = ID };
	return engine_names_request(s->names, &c);
}

/* Time until there are this many answers. */
static double wait_for(struct scene *s, unsigned answers)
{
	uint64_t begun_ns = clock_now_ns();
	while (s->answers < answers && clock_now_ns() < begun_ns + 10 * NSEC_PER_SEC)
		loop_step(s->loop, 20);
	assert_int_equal(s->answers, answers);
	return (double)(clock_now_ns() - begun_ns) / 1e9;
}

static void test_a_name(void **state)
{
	struct scene *s = *state;
	struct server server;
	server_start(&server, s->dir, ANSWER, false);
	names_start(s, "docker");
	assert_true(ask(s));
	wait_for(s, 1);
	assert_true(s->is_known);
	assert_string_equal(s->name.name, "web");
	assert_string_equal(s->name.image, "i");
	assert_null(engine_names_stop(s->names));
	assert_string_equal(server.request,
			    "GET /containers/" ID "/json HTTP/1.0\r\nHost: localhost\r\n\r\n");
	server_stop(&server);
}

static void test_none(void **state)
{
	struct scene *s = *state;
	struct server server;
	server_start(&server, s->dir, "HTTP/1.0 404 No\r\n\r\n", false);
	names_start(s, "docker");
	for (unsigned i = 1; i <= 3; i++) {
		assert_true(ask(s));
		wait_for(s, i);
		assert_false(s->is_known);
	}
	/* It has answered each: nothing is wrong with it. */
	assert_int_equal(server.asked, 3);
	engine_names_stop(s->names);
	server_stop(&server);
}

static void test_no_socket_yet(void **state)
{
	struct scene *s = *state;
	struct server server;
	names_start(s, "podman");
	assert_true(ask(s));
	assert_true(wait_for(s, 1) < 1);
	assert_false(s->is_known);
	server_start(&server, s->dir, ANSWER, false);
	assert_true(ask(s));
	wait_for(s, 2);
	assert_true(s->is_known);
	engine_names_stop(s->names);
	server_stop(&server);
}

/* It costs its time once; meanwhile others are answered that they must do without. */
static void test_one_that_hangs(void **state)
{
	struct scene *s = *state;
	struct server server;
	server_start(&server, s->dir, NULL, false);
	names_start(s, "docker");
	for (int i = 0; i < 20; i++)
		assert_true(ask(s));
	double took_s = wait_for(s, 20);
	assert_false(s->is_known);
	assert_true(took_s > 1.9);
	assert_int_equal(server.asked, 1);
	engine_names_stop(s->names);
	server_stop(&server);
}

static void test_end_while_it_hangs(void **state)
{
	static const char *const kinds[] = { "docker", "cri-o" };
	struct scene *s = *state;
	for (size_t i = 0; i < 2; i++) {
		struct server server;
		server_start(&server, s->dir, NULL, false);
		names_start(s, kinds[i]);
		assert_true(ask(s));
		while (!server.asked)
			loop_step(s->loop, 5);
		uint64_t begun_ns = clock_now_ns();
		engine_names_stop(s->names);
		assert_true(clock_now_ns() - begun_ns < ENGINE_ASK_NS);
		server_stop(&server);
	}
}

static void test_nonsense(void **state)
{
	static const struct {
		const char *kind, *answer;
		bool is_endless;
	} rows[] = {
		{ "docker", "HTTP/1.0 200 OK\r\n\r\n{", false },
		{ "docker", "hello\n", false },
		{ "docker", "HTTP/1.0 200 OK\r\n\r\nxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
		  true },
		{ "cri-o", ANSWER, false },
		{ "containerd", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", true },
	};
	struct scene *s = *state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct server server;
		server_start(&server, s->dir, rows[i].answer, rows[i].is_endless);
		names_start(s, rows[i].kind);
		assert_true(ask(s));
		assert_true(wait_for(s, i + 1) < 1.5);
		assert_false(s->is_known);
		engine_names_stop(s->names);
		server_stop(&server);
	}
}

static void test_no_engine_to_ask(void **state)
{
	struct scene *s = *state;
	struct engines none = { 0 };
	assert_int_equal(engine_names_start(s->loop, &none, answered, s, &s->names, NULL), 0);
	assert_null(s->names);
	assert_false(ask(s));
	assert_null(engine_names_stop(NULL));
}

static void test_no_more_than_so_many_wait(void **state)
{
	struct scene *s = *state;
	struct server server;
	server_start(&server, s->dir, NULL, false);
	names_start(s, "docker");
	for (int i = 0; i < ENGINE_QUESTIONS_MAX; i++)
		assert_true(ask(s));
	assert_false(ask(s));
	engine_names_stop(s->names);
	server_stop(&server);
}

static void test_when_again(void **state)
{
	assert_int_equal(engine_names_retry_ns(1), ENGINE_AGAIN_NS);
	assert_int_equal(engine_names_retry_ns(3), 4 * ENGINE_AGAIN_NS);
	assert_int_equal(engine_names_retry_ns(1000), ENGINE_AGAIN_MOST_NS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_name, setup, teardown),
		cmocka_unit_test_setup_teardown(test_none, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_socket_yet, setup, teardown),
		cmocka_unit_test_setup_teardown(test_one_that_hangs, setup, teardown),
		cmocka_unit_test_setup_teardown(test_end_while_it_hangs, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nonsense, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_engine_to_ask, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_more_than_so_many_wait, setup, teardown),
		cmocka_unit_test(test_when_again),
	};
	return cmocka_run_group_tests_name("engine_names", tests, NULL, NULL);
}
