#include "kube/client.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "kube/blame.h"
#include "kube/curl.h"
#include "kube/object.h"

#define CONNECT_TIMEOUT_MS 10000L
/* A server that is gone without a word is found out by then, on a watch that nothing comes on too. */
#define KEEPALIVE_S 20L
#define UNACKED_MS 30000

struct kube_client {
	const struct curl *curl;
	const struct kube_access *access;
	struct reactor *reactor;
	struct alarm curl_alarm;
	CURLM *multi;
	TAILQ_HEAD(, kube_call) calls;
	uint64_t next_id;
};

struct kube_call {
	struct kube_client *client;
	uint64_t id; /* an address may be another call's, later */
	CURL *easy;
	struct curl_slist *headers;
	char *body;
	char what[160]; /* "GET /api/v1/...", for errors */
	char why[CURL_ERROR_SIZE];
	char *text; /* what came, not yet taken */
	size_t size, room;
	struct error failed; /* by us: ends the call */
	kube_line line;
	bool is_good; /* `line` knows that the answer is a good one */
	kube_done done;
	void *data;
	struct alarm refused; /* the call could not begin: told from process() as well */
	TAILQ_ENTRY(kube_call) link;
};

/* ---- curl's side ---- */

static void deliver(struct kube_client *c);

static void act(struct kube_client *c, curl_socket_t fd, int what)
{
	int running;
	c->curl->multi_socket_action(c->multi, fd, what, &running);
	deliver(c);
}

static void fd_ready(void *data, int fd, uint32_t events)
{
	int what = (events & EPOLLIN ? CURL_CSELECT_IN : 0) |
		   (events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
		   (events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0);
	act(data, fd, what);
}

static void curl_due(void *data)
{
	act(data, CURL_SOCKET_TIMEOUT, 0);
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *data, void *socket_data)
{
	struct kube_client *c = data;
	uint32_t events = (what & CURL_POLL_IN ? (uint32_t)EPOLLIN : 0) |
			  (what & CURL_POLL_OUT ? (uint32_t)EPOLLOUT : 0);
	reactor_watch(c->reactor, fd, what == CURL_POLL_REMOVE ? 0 : events);
	return 0;
}

static int on_timer(CURLM *multi, long in_ms, void *data)
{
	struct kube_client *c = data;
	if (in_ms < 0)
		alarm_clear(c->reactor, &c->curl_alarm);
	else
		alarm_set(c->reactor, &c->curl_alarm, (uint64_t)in_ms * NSEC_PER_MSEC);
	return 0;
}

/* Sent bytes that nobody acknowledges end the connection, long before the kernel would. */
static int on_new_socket(void *data, curl_socket_t fd, curlsocktype purpose)
{
	int unacked_ms = UNACKED_MS;
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacked_ms, sizeof(unacked_ms));
	return CURL_SOCKOPT_OK;
}

/* ---- client ---- */

int kube_client_new(const struct kube_access *access, struct kube_client **ret, struct error *err)
{
	const struct curl *curl;
	int r = curl_load(&curl, err);
	if (r < 0)
		return r;
	struct kube_client *c = calloc(1, sizeof(*c));
	if (!c)
		return error_set_errno(err, ENOMEM, "Kubernetes client");
	*c = (struct kube_client){ .curl = curl, .access = access };
	c->curl_alarm = (struct alarm){ .ring = curl_due, .data = c };
	TAILQ_INIT(&c->calls);
	r = reactor_new(&c->reactor);
	c->multi = r < 0 ? NULL : curl->multi_init();
	if (!c->multi) {
		kube_client_free(c);
		return error_set_errno(err, r < 0 ? -r : ENOMEM, "Kubernetes client");
	}
	reactor_on_ready(c->reactor, fd_ready, c);
	curl->multi_setopt(c->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
	curl->multi_setopt(c->multi, CURLMOPT_SOCKETDATA, c);
	curl->multi_setopt(c->multi, CURLMOPT_TIMERFUNCTION, on_timer);
	curl->multi_setopt(c->multi, CURLMOPT_TIMERDATA, c);
	*ret = c;
	return 0;
}

struct kube_client *kube_client_free(struct kube_client *c)
{
	if (!c)
		return NULL;
	while (!TAILQ_EMPTY(&c->calls))
		kube_call_drop(TAILQ_FIRST(&c->calls));
	if (c->multi)
		c->curl->multi_cleanup(c->multi);
	reactor_free(c->reactor);
	free(c);
	return NULL;
}

int kube_client_fd(const struct kube_client *c)
{
	return reactor_fd(c->reactor);
}

void kube_client_process(struct kube_client *c)
{
	reactor_process(c->reactor);
}

struct reactor *kube_client_reactor(struct kube_client *c)
{
	return c->reactor;
}

/* ---- what comes ---- */

static bool make_room(struct kube_call *call, size_t more)
{
	size_t wanted = call->size + more + 1;
	if (wanted > KUBE_BODY_MAX) {
		error_set(&call->failed, EFBIG, "%s: answers with more than %u MiB", call->what,
			  KUBE_BODY_MAX >> 20);
		return false;
	}
	if (wanted <= call->room)
		return true;
	size_t room = call->room * 2 > wanted ? call->room * 2 : wanted + 4096;
	char *text = realloc(call->text, room);
	if (!text) {
		error_set_errno(&call->failed, ENOMEM, "%s", call->what);
		return false;
	}
	call->text = text;
	call->room = room;
	return true;
}

static int status_of(const struct kube_call *call)
{
	long status = 0;
	call->client->curl->easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
	return (int)status;
}

static size_t on_body(char *bytes, size_t unit, size_t count, void *data)
{
	struct kube_call *call = data;
	size_t size = unit * count;
	if (!make_room(call, size))
		return 0;
	memcpy(call->text + call->size, bytes, size);
	call->size += size;
	return size;
}

static bool is_there(const struct kube_client *c, uint64_t id)
{
	const struct kube_call *call;
	TAILQ_FOREACH(call, &c->calls, link)
	if (call->id == id)
		return true;
	return false;
}

/* Hands on the lines that are whole. False: the call was dropped by its handler, or failed. */
static bool take_lines(struct kube_call *call)
{
	struct kube_client *c = call->client;
	uint64_t id = call->id;
	size_t from = 0;
	char *end;
	while (call->size > from && (end = memchr(call->text + from, '\n', call->size - from))) {
		size_t length = (size_t)(end - call->text) - from;
		json_error_t why;
		cleanup_object json_t *object = json_loadb(call->text + from, length, 0, &why);
		from += length + 1;
		if (!length)
			continue;
		if (!object) {
			error_set(&call->failed, EPROTO, "%s: answers with what is no JSON: %s",
				  call->what, why.text);
			return false;
		}
		call->line(call->data, object);
		if (!is_there(c, id))
			return false;
	}
	if (from)
		memmove(call->text, call->text + from, call->size - from);
	call->size -= from;
	return true;
}

/* ---- ends ---- */

static int code_of_status(int status)
{
	switch (status) {
	case 401:
	case 403: return EACCES;
	case 404: return ENOENT;
	case 409: return EAGAIN; /* somebody was before us */
	case 410: return ESTALE;
	case 429: return EBUSY;
	default: return status >= 500 ? EBUSY : EINVAL;
	}
}

static uint64_t retry_after_ns(const struct kube_call *call)
{
	curl_off_t s = 0;
	call->client->curl->easy_getinfo(call->easy, CURLINFO_RETRY_AFTER, &s);
	return s > 0 && s < 3600 ? (uint64_t)s * NSEC_PER_SEC : 0;
}

static void read_answer(struct kube_call *call, int result, struct kube_answer *a)
{
	json_error_t why;
	if (call->failed.code) {
		a->err = call->failed;
		return;
	}
	if (result != CURLE_OK) {
		error_set(&a->err, result == CURLE_OPERATION_TIMEDOUT ? ETIMEDOUT : ECONNREFUSED,
			  "%s: %s", call->what,
			  call->why[0] ? call->why
				       : call->client->curl->easy_strerror((CURLcode)result));
		return;
	}
	a->status = status_of(call);
	a->retry_after_ns = retry_after_ns(call);
	bool is_good = a->status / 100 == 2;
	if (!call->line || !is_good)
		a->object = json_loadb(call->text ? call->text : "", call->size, 0, &why);
	if (is_good && !call->line && !a->object) {
		error_set(&a->err, EPROTO, "%s: answers with what is no JSON: %s", call->what,
			  why.text);
	} else if (!is_good) {
		const char *message = json_string_value(json_object_get(a->object, "message"));
		error_set(&a->err, code_of_status(a->status), "%s: %d%s%.300s", call->what,
			  a->status, message ? ": " : "", message ? message : "");
	}
}

static void finish(struct kube_call *call, int result)
{
	struct kube_answer answer = { 0 };
	read_answer(call, result, &answer);
	blame(&answer.err, 0);
	kube_done done = call->done;
	void *data = call->data;
	kube_call_drop(call);
	done(data, &answer);
	json_decref(answer.object);
}

static struct kube_call *find_call(struct kube_client *c, const CURL *easy)
{
	struct kube_call *call;
	TAILQ_FOREACH(call, &c->calls, link)
	if (call->easy == easy)
		return call;
	return NULL;
}

/* A call whose owner has something to be told before its end. */
static struct kube_call *find_lines(struct kube_client *c)
{
	struct kube_call *call;
	TAILQ_FOREACH(call, &c->calls, link)
	if (call->line && !call->failed.code && status_of(call) / 100 == 2 &&
	    (!call->is_good || (call->size && memchr(call->text, '\n', call->size))))
		return call;
	return NULL;
}

/* Whose lines have come, and which calls have ended. Handlers may drop any call: begin anew after each. */
static void deliver(struct kube_client *c)
{
	struct kube_call *call;
	int left;
	while ((call = find_lines(c))) {
		uint64_t id = call->id;
		bool is_new = !call->is_good;
		call->is_good = true;
		if (is_new)
			call->line(call->data, NULL);
		else if (!take_lines(call) && is_there(c, id))
			finish(call, CURLE_WRITE_ERROR);
	}
	for (CURLMsg *message; (message = c->curl->multi_info_read(c->multi, &left));) {
		call = message->msg == CURLMSG_DONE ? find_call(c, message->easy_handle) : NULL;
		if (call)
			finish(call, (int)message->data.result);
	}
}

static void tell_refused(void *data)
{
	finish(data, CURLE_FAILED_INIT);
}

struct kube_call *kube_call_drop(struct kube_call *call)
{
	if (!call)
		return NULL;
	struct kube_client *c = call->client;
	alarm_clear(c->reactor, &call->refused);
	TAILQ_REMOVE(&c->calls, call, link);
	if (call->easy) {
		c->curl->multi_remove_handle(c->multi, call->easy);
		c->curl->easy_cleanup(call->easy);
	}
	c->curl->slist_free_all(call->headers);
	free(call->body);
	free(call->text);
	free(call);
	return NULL;
}

/* ---- begins ---- */

static int add_header(struct kube_call *call, const char *name, const char *value)
{
	cleanup_free char *line = NULL;
	if (asprintf(&line, "%s: %s", name, value) < 0)
		line = NULL;
	struct curl_slist *list = line ? call->client->curl->slist_append(call->headers, line)
				       : NULL;
	if (!list)
		return -ENOMEM;
	call->headers = list;
	return 0;
}

static int add_token(struct kube_call *call)
{
	const struct kube_access *a = call->client->access;
	cleanup_free char *fresh = NULL, *value = NULL;
	int r = a->token_file ? access_read_file(a->token_file, &fresh, &call->failed) : 0;
	const char *token = fresh ? fresh : a->token;
	if (r < 0 || !token)
		return r;
	if (strpbrk(token, "\r\n"))
		return error_set(&call->failed, EINVAL, "the token must be one line");
	if (asprintf(&value, "Bearer %s", token) < 0)
		value = NULL;
	return value ? add_header(call, "Authorization", value) : -ENOMEM;
}

static void set_blob(struct kube_call *call, CURLoption option, char *pem)
{
	struct curl_blob blob = { .data = pem,
				  .len = pem ? strlen(pem) : 0,
				  .flags = CURL_BLOB_NOCOPY };
	if (pem)
		call->client->curl->easy_setopt(call->easy, option, &blob);
}

static void set_access(struct kube_call *call)
{
	const struct kube_access *a = call->client->access;
	const struct curl *curl = call->client->curl;
	set_blob(call, CURLOPT_CAINFO_BLOB, a->ca_pem);
	set_blob(call, CURLOPT_SSLCERT_BLOB, a->certificate_pem);
	set_blob(call, CURLOPT_SSLKEY_BLOB, a->key_pem);
	curl->easy_setopt(call->easy, CURLOPT_SSL_VERIFYPEER, a->is_unverified ? 0L : 1L);
	curl->easy_setopt(call->easy, CURLOPT_SSL_VERIFYHOST, a->is_unverified ? 0L : 2L);
}

/* HTTP/1.1: each watch has a connection of its own, so one that hangs holds up nothing else. */
static void set_transport(struct kube_call *call, uint64_t timeout_ns)
{
	const struct curl *curl = call->client->curl;
	CURL *e = call->easy;
	curl->easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl->easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
	curl->easy_setopt(e, CURLOPT_PROXY, "");
	curl->easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
	curl->easy_setopt(e, CURLOPT_TIMEOUT_MS, (long)(timeout_ns / NSEC_PER_MSEC));
	curl->easy_setopt(e, CURLOPT_TCP_KEEPALIVE, 1L);
	curl->easy_setopt(e, CURLOPT_TCP_KEEPIDLE, KEEPALIVE_S);
	curl->easy_setopt(e, CURLOPT_TCP_KEEPINTVL, KEEPALIVE_S / 4);
	curl->easy_setopt(e, CURLOPT_SOCKOPTFUNCTION, on_new_socket);
	curl->easy_setopt(e, CURLOPT_ERRORBUFFER, call->why);
	curl->easy_setopt(e, CURLOPT_WRITEFUNCTION, on_body);
	curl->easy_setopt(e, CURLOPT_WRITEDATA, call);
}

static int begin(struct kube_call *call, const struct kube_request *request)
{
	struct kube_client *c = call->client;
	cleanup_free char *url = NULL;
	call->easy = c->curl->easy_init();
	if (!call->easy || asprintf(&url, "%s%s", c->access->server, request->path) < 0)
		return error_set_errno(&call->failed, ENOMEM, "%s", call->what);
	c->curl->easy_setopt(call->easy, CURLOPT_URL, url);
	c->curl->easy_setopt(call->easy, CURLOPT_CUSTOMREQUEST, request->method);
	c->curl->easy_setopt(call->easy, CURLOPT_USERAGENT, "allot/" ALLOT_VERSION);
	set_transport(call, request->timeout_ns ? request->timeout_ns : KUBE_CALL_TIMEOUT_NS);
	set_access(call);
	int r = add_header(call, "Accept", KUBE_JSON);
	if (r >= 0 && request->body) {
		call->body = strdup(request->body);
		r = call->body ? add_header(call, "Content-Type", request->type) : -ENOMEM;
		c->curl->easy_setopt(call->easy, CURLOPT_POSTFIELDS, call->body);
	}
	if (r >= 0)
		r = add_token(call);
	if (r < 0)
		return call->failed.code ? error_add(&call->failed, r, "%s", call->what)
					 : error_set_errno(&call->failed, -r, "%s", call->what);
	c->curl->easy_setopt(call->easy, CURLOPT_HTTPHEADER, call->headers);
	if (c->curl->multi_add_handle(c->multi, call->easy) != CURLM_OK)
		return error_set_errno(&call->failed, ENOMEM, "%s", call->what);
	return 0;
}

struct kube_call *kube_call_start(struct kube_client *client, const struct kube_request *request,
				  kube_line line, kube_done done, void *data)
{
	struct kube_call *call = calloc(1, sizeof(*call));
	if (!call)
		return NULL;
	*call = (struct kube_call){
		.client = client, .id = ++client->next_id, .line = line, .done = done, .data = data
	};
	call->refused = (struct alarm){ .ring = tell_refused, .data = call };
	snprintf(call->what, sizeof(call->what), "%s %.*s", request->method,
		 (int)strcspn(request->path, "?"), request->path);
	TAILQ_INSERT_TAIL(&client->calls, call, link);
	if (begin(call, request) < 0)
		alarm_set(client->reactor, &call->refused, 0);
	return call;
}
