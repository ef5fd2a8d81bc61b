/* The gRPC server, with peers as they should be and as they should not. Its loop turns in a thread. */
#include <errno.h>
#include <nghttp2/nghttp2.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "net/grpc_client.h"
#include "net/grpc_server.h"
#include "net/listen.h"

#define MS NSEC_PER_MSEC
#define PATIENCE_NS (20 * NSEC_PER_SEC)
#define LIMIT_CONNECTIONS 4
#define LIMIT_BYTES 65536
#define PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

/* ---- a service ---- */

static char path[64];
static struct loop *loop;
static struct grpc_server *server;
static int quit_fd, publish_fd;
static pthread_t thread;
static struct grpc_call *watchers[256];
static unsigned watcher_count, published;
static atomic_uint gone_count, kept_count;

static void reply(struct grpc_call *call, const void *data, size_t size)
{
	struct grpc_message *m = grpc_message_new(size);
	if (size)
		memcpy(grpc_message_data(m), data, size);
	grpc_call_send(call, m);
	grpc_call_end(call, GRPC_OK, NULL);
	grpc_message_unref(m);
}

static void echo(void *data, struct grpc_call *call, const uint8_t *message, size_t size)
{
	reply(call, message, size);
}

static void refuse(void *data, struct grpc_call *call, const uint8_t *message, size_t size)
{
	grpc_call_end(call, GRPC_FAILED_PRECONDITION, "no: 5 % of \xc3\xbc\nare gone");
}

static void forget(void *data, struct grpc_call *call, const uint8_t *message, size_t size)
{
}

static void watcher_gone(void *data, struct grpc_call *call)
{
	for (unsigned i = 0; i < watcher_count; i++)
		if (watchers[i] == call)
			watchers[i--] = watchers[--watcher_count];
	atomic_fetch_add(&gone_count, 1);
}

/* Numbers, each in a message of some KiB. */
static struct grpc_message *make_number(void)
{
	struct grpc_message *m = grpc_message_new(8192);
	memset(grpc_message_data(m), 0, 8192);
	memcpy(grpc_message_data(m), &published, sizeof(published));
	return m;
}

static void watch(void *data, struct grpc_call *call, const uint8_t *message, size_t size)
{
	struct grpc_message *m = make_number();
	assert_true(watcher_count < 256);
	watchers[watcher_count++] = call;
	grpc_call_keep(call, watcher_gone, NULL);
	grpc_call_send(call, m);
	grpc_message_unref(m);
	atomic_fetch_add(&kept_count, 1);
}

static void publish(void *data, uint32_t events)
{
	uint64_t n;
	if (read(publish_fd, &n, sizeof(n)) < 0)
		return;
	for (; n; n--) {
		published++;
		struct grpc_message *m = make_number();
		for (unsigned i = 0; i < watcher_count; i++)
			grpc_call_send(watchers[i], m);
		grpc_message_unref(m);
	}
}

static void quit(void *data, uint32_t events)
{
	loop_quit(loop);
}

static const struct grpc_method methods[] = {
	{ "/test.Test/Echo", echo },
	{ "/test.Test/Refuse", refuse },
	{ "/test.Test/Forget", forget },
	{ "/test.Test/Watch", watch },
};

static void *serve(void *data)
{
	loop_run(loop);
	server = grpc_server_free(server);
	return NULL;
}

static struct loop_source *quit_source, *publish_source;

static int setup(void **state)
{
	struct grpc_service service = { .methods = methods,
					.method_count = 4,
					.limits = grpc_limits_default() };
	struct error err;
	service.limits.connections = LIMIT_CONNECTIONS;
	service.limits.message_bytes = LIMIT_BYTES;
	/* Longer than a machine with other things to do stands still. */
	service.limits.arrive_ns = 1500 * MS;
	service.limits.stall_ns = 1500 * MS;
	snprintf(path, sizeof(path), "/tmp/allot-grpc-%d", (int)getpid());
	int fd = listen_bind(path, SOCK_STREAM, &err);
	assert_true(fd >= 0);
	assert_int_equal(listen(fd, 64), 0);
	quit_fd = eventfd(0, EFD_NONBLOCK);
	publish_fd = eventfd(0, EFD_NONBLOCK);
	watcher_count = published = 0;
	atomic_store(&gone_count, 0);
	atomic_store(&kept_count, 0);
	assert_int_equal(loop_new(&loop, &err), 0);
	assert_int_equal(loop_add(loop, quit_fd, EPOLLIN, quit, NULL, &quit_source), 0);
	assert_int_equal(loop_add(loop, publish_fd, EPOLLIN, publish, NULL, &publish_source), 0);
	assert_int_equal(grpc_server_new(loop, fd, &service, &server, &err), 0);
	return pthread_create(&thread, NULL, serve, NULL);
}

static int teardown(void **state)
{
	uint64_t one = 1;
	assert_int_equal(write(quit_fd, &one, sizeof(one)), sizeof(one));
	pthread_join(thread, NULL);
	loop_remove(quit_source);
	loop_remove(publish_source);
	loop_free(loop);
	close(quit_fd);
	close(publish_fd);
	return unlink(path);
}

static void tell_watchers(uint64_t times)
{
	assert_int_equal(write(publish_fd, &times, sizeof(times)), sizeof(times));
}

static void wait_for(atomic_uint *counter, unsigned least)
{
	uint64_t end_ns = clock_now_ns() + PATIENCE_NS;
	while (atomic_load(counter) < least && clock_now_ns() < end_ns)
		usleep(1000);
	assert_true(atomic_load(counter) >= least);
}

/* ---- the client of our own ---- */

static struct grpc_reply call(const char *method, const void *message, size_t size)
{
	struct net_link link;
	struct grpc_reply r = { 0 };
	struct grpc_request q = {
		.method = method, .message = message, .size = size, .most_bytes = 1 << 20
	};
	assert_int_equal(net_link_open(&link, path, -1, clock_now_ns() + PATIENCE_NS), 0);
	assert_int_equal(grpc_call_unary(&link, &q, &r), 0);
	net_link_close(&link);
	return r;
}

static void check_echo(size_t size)
{
	uint8_t *message = calloc(1, size + 1);
	for (size_t i = 0; i < size; i++)
		message[i] = (uint8_t)(i * 7);
	struct grpc_reply r = call("/test.Test/Echo", message, size);
	assert_int_equal(r.status, GRPC_OK);
	assert_int_equal(r.size, size);
	if (size)
		assert_memory_equal(r.message, message, size);
	free(r.message);
	free(message);
}

static void test_unary(void **state)
{
	const size_t sizes[] = { 0, 1, 1000, 16384, 65530, LIMIT_BYTES };
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		check_echo(sizes[i]);
}

static void check_refused(const char *method, size_t size, enum grpc_status status, const char *text)
{
	uint8_t *message = calloc(1, size + 1);
	struct grpc_reply r = call(method, message, size);
	assert_int_equal(r.status, status);
	assert_string_equal(r.text, text);
	assert_null(r.message);
	free(message);
}

static void test_refusals(void **state)
{
	check_refused("/test.Test/Refuse", 0, GRPC_FAILED_PRECONDITION,
		      "no: 5 % of \xc3\xbc\nare gone");
	check_refused("/test.Test/None", 3, GRPC_UNIMPLEMENTED, "this server has no such method");
	check_refused("/", 0, GRPC_UNIMPLEMENTED, "this server has no such method");
	check_refused("/test.Test/Forget", 0, GRPC_INTERNAL,
		      "internal error: the method gave no answer");
	/* The answer comes before the request is there, and ends it. */
	check_refused("/test.Test/Echo", LIMIT_BYTES + 1, GRPC_RESOURCE_EXHAUSTED,
		      "a message of 65537 bytes: must be at most 65536");
	check_refused("/test.Test/None", 10 << 20, GRPC_UNIMPLEMENTED,
		      "this server has no such method");
	check_echo(10);
}

/* ---- a peer of any kind ---- */

struct stream {
	int32_t id;
	char http_status[8], grpc_status[8], grpc_message[128];
	unsigned messages, last; /* whole ones of Watch, and its number */
	uint8_t data[8192 + GRPC_HEAD_BYTES];
	size_t size;
	bool is_closed;
	uint32_t code;
};

struct peer {
	int fd;
	nghttp2_session *session;
	struct stream stream[8];
	bool is_blind; /* gives no room for data */
	bool is_ended, has_pong, has_settings, has_goaway;
};

static struct stream *find_stream(struct peer *p, int32_t id)
{
	for (size_t i = 0; i < 8; i++)
		if (p->stream[i].id == id)
			return &p->stream[i];
	return NULL;
}

static void keep(char *field, size_t room, const uint8_t *value, size_t size)
{
	size_t n = size < room - 1 ? size : room - 1;
	memcpy(field, value, n);
	field[n] = '\0';
}

static int peer_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
		       size_t name_size, const uint8_t *value, size_t value_size, uint8_t flags,
		       void *user)
{
	struct stream *s = find_stream(user, frame->hd.stream_id);
	if (s && name_size == 7 && !memcmp(name, ":status", 7))
		keep(s->http_status, sizeof(s->http_status), value, value_size);
	if (s && name_size == 11 && !memcmp(name, "grpc-status", 11))
		keep(s->grpc_status, sizeof(s->grpc_status), value, value_size);
	if (s && name_size == 12 && !memcmp(name, "grpc-message", 12))
		keep(s->grpc_message, sizeof(s->grpc_message), value, value_size);
	return 0;
}

static int peer_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *data,
		     size_t size, void *user)
{
	struct stream *s = find_stream(user, stream);
	for (size_t i = 0; s && i < size; i++) {
		s->data[s->size++] = data[i];
		if (s->size < sizeof(s->data))
			continue;
		memcpy(&s->last, s->data + GRPC_HEAD_BYTES, sizeof(s->last));
		s->messages++;
		s->size = 0;
	}
	return 0;
}

static int peer_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct peer *p = user;
	p->has_pong |= frame->hd.type == NGHTTP2_PING && (frame->hd.flags & NGHTTP2_FLAG_ACK);
	p->has_settings |= frame->hd.type == NGHTTP2_SETTINGS &&
			   (frame->hd.flags & NGHTTP2_FLAG_ACK);
	p->has_goaway |= frame->hd.type == NGHTTP2_GOAWAY;
	return 0;
}

static int peer_closed(nghttp2_session *session, int32_t stream, uint32_t code, void *user)
{
	struct stream *s = find_stream(user, stream);
	if (s) {
		s->is_closed = true;
		s->code = code;
	}
	return 0;
}

static int connect_peer(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	strcpy(address.sun_path, path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static struct peer *peer_new(bool is_blind)
{
	struct peer *p = calloc(1, sizeof(*p));
	nghttp2_session_callbacks *callbacks;
	nghttp2_option *option;
	nghttp2_settings_entry window = { NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 100 };
	p->fd = connect_peer();
	p->is_blind = is_blind;
	assert_int_equal(nghttp2_session_callbacks_new(&callbacks), 0);
	assert_int_equal(nghttp2_option_new(&option), 0);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, peer_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, peer_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, peer_frame);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, peer_closed);
	/* It says what no client should. */
	nghttp2_option_set_no_http_messaging(option, 1);
	nghttp2_option_set_no_auto_window_update(option, is_blind);
	assert_int_equal(nghttp2_session_client_new2(&p->session, callbacks, p, option), 0);
	nghttp2_option_del(option);
	nghttp2_session_callbacks_del(callbacks);
	nghttp2_submit_settings(p->session, 0, &window, is_blind);
	return p;
}

static void peer_free(struct peer *p)
{
	nghttp2_session_del(p->session);
	close(p->fd);
	free(p);
}

/* Whether anybody listens is seen when it reads. */
static void peer_send(struct peer *p)
{
	const uint8_t *data;
	ssize_t n;
	while ((n = nghttp2_session_mem_send(p->session, &data)) > 0)
		n = send(p->fd, data, (size_t)n, MSG_NOSIGNAL);
}

/* One step; false when nothing came for a while. */
static bool peer_turn(struct peer *p, int timeout_ms)
{
	uint8_t chunk[16384];
	struct pollfd poll_fd = { .fd = p->fd, .events = POLLIN };
	peer_send(p);
	if (p->is_ended || poll(&poll_fd, 1, timeout_ms) <= 0)
		return false;
	ssize_t n = recv(p->fd, chunk, sizeof(chunk), 0);
	if (n <= 0) {
		p->is_ended = true;
		return false;
	}
	assert_int_equal(nghttp2_session_mem_recv(p->session, chunk, (size_t)n), n);
	return true;
}

#define PEER_UNTIL(p, condition) \
	do { \
		uint64_t end_ns_ = clock_now_ns() + PATIENCE_NS; \
		while (!(condition) && !(p)->is_ended && clock_now_ns() < end_ns_) \
			peer_turn(p, 10); \
		assert_true(condition); \
	} while (0)

static nghttp2_nv nv(const char *name, const char *value)
{
	return (nghttp2_nv){ (uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name),
			     strlen(value), NGHTTP2_NV_FLAG_NONE };
}

/* The body of a request: an empty message, or what is there. */
struct body {
	const char *data;
	size_t size, sent;
	bool is_endless; /* never ends */
};

static ssize_t give_body(nghttp2_session *session, int32_t stream, uint8_t *data, size_t size,
			 uint32_t *flags, nghttp2_data_source *source, void *user)
{
	struct body *b = source->ptr;
	size_t n = b->size - b->sent < size ? b->size - b->sent : size;
	memcpy(data, b->data + b->sent, n);
	b->sent += n;
	if (b->sent == b->size && !b->is_endless)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	return !n && b->is_endless ? NGHTTP2_ERR_DEFERRED : (ssize_t)n;
}

#define ALL_HEADERS 6
static void usual_headers(nghttp2_nv headers[ALL_HEADERS], const char *method)
{
	headers[0] = nv(":method", "POST");
	headers[1] = nv(":scheme", "http");
	headers[2] = nv(":path", method);
	headers[3] = nv(":authority", "localhost");
	headers[4] = nv("content-type", "application/grpc");
	headers[5] = nv("te", "trailers");
}

/* `b` lives as long as the stream. */
static struct stream *peer_call(struct peer *p, unsigned at, const nghttp2_nv *headers,
				size_t count, struct body *b)
{
	nghttp2_data_provider provider = { .source.ptr = b, .read_callback = give_body };
	if (!b->data)
		*b = (struct body){ .data = "\0\0\0\0", .size = 5 };
	p->stream[at] = (struct stream){ .id = nghttp2_submit_request(p->session, NULL, headers,
								      count, &provider, NULL) };
	assert_true(p->stream[at].id > 0);
	return &p->stream[at];
}

/* As older kubelets say it. */
static void test_path_as_authority(void **state)
{
	struct peer *p = peer_new(false);
	struct body b = { 0 };
	nghttp2_nv headers[ALL_HEADERS];
	usual_headers(headers, "/test.Test/Echo");
	headers[3] = nv(":authority", "/var/lib/kubelet/device-plugins/allot-gpu.sock");
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
	usual_headers(headers, "/test.Test/Echo");
	headers[ALL_HEADERS] = nv("x-other", "1");
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
	check_headers(0, nv(":method", "GET"), "415", "2", NGHTTP2_NO_ERROR);
	check_headers(4, nv("content-type", "text/plain"), "415", "2", NGHTTP2_NO_ERROR);
	check_headers(4, nv("x-none", "y"), "415", "2", NGHTTP2_NO_ERROR);
	check_headers(2, nv("x-path", "y"), "", "", NGHTTP2_PROTOCOL_ERROR);
	check_headers(6, nv(":path", "/test.Test/Watch"), "", "", NGHTTP2_PROTOCOL_ERROR);
	check_headers(6, nv("x-long", longest), "", "", NGHTTP2_INTERNAL_ERROR);
	check_headers(6, nv("grpc-timeout", "soon"), "200", "13", NGHTTP2_NO_ERROR);
	check_headers(6, nv("grpc-timeout", "20S"), "200", "0", NGHTTP2_NO_ERROR);
	check_echo(10);
}

static void check_body(const char *data, size_t size, const char *grpc_status)
{
	struct peer *p = peer_new(false);
	struct body b = { .data = data, .size = size };
	nghttp2_nv headers[ALL_HEADERS];
	usual_headers(headers, "/test.Test/Echo");
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

static struct stream *begin_watch(struct peer *p, unsigned at, struct body *b, const char *timeout)
{
	nghttp2_nv headers[ALL_HEADERS + 1];
	usual_headers(headers, "/test.Test/Watch");
	headers[ALL_HEADERS] = nv("grpc-timeout", timeout ? timeout : "");
	return peer_call(p, at, headers, ALL_HEADERS + !!timeout, b);
}

static void test_watchers(void **state)
{
	struct peer *p = peer_new(false), *q = peer_new(false);
	struct body b[4] = { 0 };
	struct stream *s = begin_watch(p, 0, &b[0], NULL), *t = begin_watch(p, 1, &b[1], NULL);
	struct stream *u = begin_watch(q, 0, &b[2], NULL);
	PEER_UNTIL(p, s->messages && t->messages);
	PEER_UNTIL(q, u->messages);
	tell_watchers(1);
	PEER_UNTIL(p, s->last == 1 && t->last == 1);
	PEER_UNTIL(q, u->last == 1);
	/* One of them leaves; calls beside the streams go on. */
	nghttp2_submit_rst_stream(p->session, 0, s->id, NGHTTP2_CANCEL);
	peer_send(p);
	wait_for(&gone_count, 1);
	check_echo(100);
	nghttp2_submit_ping(p->session, 0, NULL);
	PEER_UNTIL(p, p->has_pong && p->has_settings);
	tell_watchers(1);
	PEER_UNTIL(p, t->last == 2);
	PEER_UNTIL(q, u->last == 2);
	peer_free(p);
	wait_for(&gone_count, 2);
	peer_free(q);
	wait_for(&gone_count, 3);
}

/* Who reads slowly gets the newest, not all; who does not read at all is let go. */
static void test_a_slow_watcher(void **state)
{
	struct peer *p = peer_new(true);
	struct body b = { 0 };
	struct stream *s = begin_watch(p, 0, &b, NULL);
	PEER_UNTIL(p, p->has_settings && s->size >= 100);
	tell_watchers(50);
	/* Room for a message more only when there is none, so that too little is left for one in the end. */
	for (unsigned i = 0; i < 400 && !s->is_closed && s->last < 50; i++) {
		if (nghttp2_session_get_stream_local_window_size(p->session, s->id) <= 0)
			nghttp2_submit_window_update(p->session, 0, s->id, 8192);
		peer_turn(p, 10);
	}
	assert_int_equal(s->last, 50);
	assert_true(s->messages < 10);
	tell_watchers(1);
	for (unsigned i = 0; i < 4; i++)
		tell_watchers(1);
	PEER_UNTIL(p, s->is_closed || p->is_ended);
	wait_for(&gone_count, 1);
	peer_free(p);
}

static void test_a_call_s_own_time(void **state)
{
	struct peer *p = peer_new(false);
	struct body b = { 0 };
	struct stream *s = begin_watch(p, 0, &b, "200m");
	PEER_UNTIL(p, s->is_closed);
	assert_int_equal(s->messages, 1);
	assert_string_equal(s->grpc_status, "4");
	wait_for(&gone_count, 1);
	peer_free(p);
}

static void test_goodbye(void **state)
{
	struct peer *p = peer_new(false);
	struct body b = { 0 };
	struct stream *s = begin_watch(p, 0, &b, NULL);
	PEER_UNTIL(p, s->messages);
	teardown(NULL);
	PEER_UNTIL(p, p->has_goaway);
	assert_int_equal(atomic_load(&gone_count), 1);
	peer_free(p);
	setup(NULL);
}

/* ---- peers that should not be ---- */

static void wait_for_end(int fd)
{
	uint8_t chunk[4096];
	struct pollfd p = { .fd = fd, .events = POLLIN };
	ssize_t n;
	do {
		assert_int_equal(poll(&p, 1, (int)(PATIENCE_NS / MS)), 1);
		n = recv(fd, chunk, sizeof(chunk), 0);
	} while (n > 0);
	close(fd);
}

static void test_who_says_nothing(void **state)
{
	wait_for_end(connect_peer());
	int fd = connect_peer();
	assert_int_equal(send(fd, PREFACE, 10, 0), 10);
	wait_for_end(fd);
}

/* Whoever may open the socket, as a directory was left open: only root and our own user are served. */
static void test_another_user(void **state)
{
	int status;
	if (geteuid() != 0)
		skip();
	assert_int_equal(chmod(path, 0666), 0);
	pid_t pid = fork();
	if (pid == 0) {
		struct sockaddr_un address = { .sun_family = AF_UNIX };
		char c;
		int fd = socket(AF_UNIX, SOCK_STREAM, 0);
		strcpy(address.sun_path, path);
		if (setresuid(65534, 65534, 65534) < 0 ||
		    connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
			_exit(2);
		/* Not a byte, where others get SETTINGS. */
		_exit(recv(fd, &c, 1, 0) == 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	check_echo(10);
}

static void test_a_request_that_does_not_end(void **state)
{
	struct peer *p = peer_new(false);
	struct body b = { .data = "\0\0\0\1\0abc", .size = 8, .is_endless = true };
	nghttp2_nv headers[ALL_HEADERS];
	usual_headers(headers, "/test.Test/Echo");
	struct stream *s = peer_call(p, 0, headers, ALL_HEADERS, &b);
	PEER_UNTIL(p, s->is_closed);
	assert_string_equal(s->grpc_status, "4");
	peer_free(p);
}

static void test_no_http(void **state)
{
	static const char *const words[] = { "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
					     "\x16\x03\x01\x02", "PRI * HTTP/2.0\r\n\r\nSM\r\n\rX" };
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		int fd = connect_peer();
		assert_true(send(fd, words[i], strlen(words[i]), 0) > 0);
		wait_for_end(fd);
	}
	check_echo(10);
}

/* Frames that are cheap to send and cost an answer each, from a peer that reads none of them. */
static void test_floods(void **state)
{
	static const char ping[] = "\0\0\x08\x06\0\0\0\0\0whatever";
	static const char settings[] = "\0\0\0\x04\0\0\0\0\0";
	static const char reset[] = "\0\0\x04\x03\0\0\0\0\1\0\0\0\x08";
	const struct {
		const char *frame;
		size_t size;
	} kinds[] = { { ping, sizeof(ping) - 1 },
		      { settings, sizeof(settings) - 1 },
		      { reset, sizeof(reset) - 1 } };
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		int fd = connect_peer();
		ssize_t n = send(fd, PREFACE, strlen(PREFACE), 0);
		n = send(fd, settings, sizeof(settings) - 1, 0);
		for (unsigned k = 0; k < 200000 && n > 0; k++)
			n = send(fd, kinds[i].frame, kinds[i].size, MSG_NOSIGNAL | MSG_DONTWAIT);
		/* It is let go, or not read from any more; others are served meanwhile. */
		assert_true(n < 0);
		check_echo(100);
		close(fd);
	}
}

/* Too many at a time: those without a call make room, others don't. */
static void test_many_connections(void **state)
{
	int idle[LIMIT_CONNECTIONS];
	struct peer *p[LIMIT_CONNECTIONS];
	struct body b[LIMIT_CONNECTIONS] = { 0 };
	for (unsigned i = 0; i < LIMIT_CONNECTIONS; i++)
		idle[i] = connect_peer();
	for (unsigned i = 0; i < LIMIT_CONNECTIONS; i++) {
		p[i] = peer_new(false);
		struct stream *s = begin_watch(p[i], 0, &b[i], NULL);
		PEER_UNTIL(p[i], s->messages);
	}
	wait_for_end(connect_peer());
	for (unsigned i = 0; i < LIMIT_CONNECTIONS; i++)
		wait_for_end(idle[i]);
	peer_free(p[0]);
	wait_for(&gone_count, 1);
	check_echo(10);
	for (unsigned i = 1; i < LIMIT_CONNECTIONS; i++)
		peer_free(p[i]);
}

/* Too many calls at a time on one connection: the rest waits or is refused, none is lost. */
static void test_many_calls(void **state)
{
	for (unsigned turn = 0; turn < 40; turn++) {
		struct peer *p = peer_new(false);
		struct body b[8] = { 0 };
		nghttp2_nv headers[ALL_HEADERS];
		usual_headers(headers, "/test.Test/Echo");
		for (unsigned i = 0; i < 8; i++)
			peer_call(p, i, headers, ALL_HEADERS, &b[i]);
		for (unsigned i = 0; i < 8; i++) {
			PEER_UNTIL(p, p->stream[i].is_closed);
			assert_string_equal(p->stream[i].grpc_status, "0");
		}
		peer_free(p);
	}
}

/* A conversation as it should be, with bytes changed: whatever becomes of it, the next one is served. */
static void test_damaged_frames(void **state)
{
	unsigned seed = 20261122;
	for (unsigned turn = 0; turn < 1500; turn++) {
		uint8_t wire[1024];
		size_t size = 0;
		const uint8_t *data;
		ssize_t n;
		struct peer *p = peer_new(false);
		struct body b[2] = { 0 };
		nghttp2_nv headers[ALL_HEADERS];
		usual_headers(headers, turn % 2 ? "/test.Test/Watch" : "/test.Test/Echo");
		peer_call(p, 0, headers, ALL_HEADERS, &b[0]);
		peer_call(p, 1, headers, ALL_HEADERS, &b[1]);
		while ((n = nghttp2_session_mem_send(p->session, &data)) > 0) {
			assert_true(size + (size_t)n <= sizeof(wire));
			memcpy(wire + size, data, (size_t)n);
			size += (size_t)n;
		}
		for (unsigned k = rand_r(&seed) % 4; k < 4; k++)
			wire[24 + (size_t)rand_r(&seed) % (size - 24)] = (uint8_t)rand_r(&seed);
		size_t cut = rand_r(&seed) % 4 ? size : (size_t)rand_r(&seed) % size;
		n = send(p->fd, wire, cut, MSG_NOSIGNAL);
		if (turn % 100 == 0)
			check_echo(10);
		peer_free(p);
	}
	check_echo(10);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_unary),
		TEST(test_refusals),
		TEST(test_path_as_authority),
		TEST(test_wrong_headers),
		TEST(test_wrong_messages),
		TEST(test_watchers),
		TEST(test_a_slow_watcher),
		TEST(test_a_call_s_own_time),
		TEST(test_goodbye),
		TEST(test_who_says_nothing),
		TEST(test_another_user),
		TEST(test_a_request_that_does_not_end),
		TEST(test_no_http),
		TEST(test_floods),
		TEST(test_many_connections),
		TEST(test_many_calls),
		TEST(test_damaged_frames),
	};
	return cmocka_run_group_tests_name("grpc server", tests, NULL, NULL);
}
