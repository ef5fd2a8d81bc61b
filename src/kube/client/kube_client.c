#include "kube/client/kube_client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/symbols.h"
#include "kube/client/client_inside.h"
#include "kube/util/untrusted_json.h"

static bool is_there(const struct kube_client *c, uint64_t id)
{
	const struct kube_call *call;
	TAILQ_FOREACH(call, &c->calls, link)
		if (call->id == id)
			return true;
	return false;
}

/* Delivers the complete lines. Returns false if the handler dropped the call, or if the call failed. */
static bool deliver_lines(struct kube_call *call)
{
	struct kube_client *c = call->client;
	uint64_t id = call->id;
	size_t from = 0;
	char *end;
	while (call->size > from && (end = memchr(call->text + from, '\n', call->size - from))) {
		size_t length = (size_t)(end - call->text) - from;
		json_error_t why;
		cleanup_json json_t *object = untrusted_json_parse(call->text + from, length, 0,
								   &why);
		from += length + 1;
		if (!length)
			continue;
		if (!object) {
			error_set(&call->failed, EPROTO, "%s: the answer is not JSON: %s",
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

static struct kube_call *find_call(struct kube_client *c, const CURL *easy)
{
	struct kube_call *call;
	TAILQ_FOREACH(call, &c->calls, link)
		if (call->easy == easy)
			return call;
	return NULL;
}

/* Finds a call that has something to deliver: a complete line, or a 2xx status that is not reported to `line` yet. */
static struct kube_call *find_lines(struct kube_client *c)
{
	struct kube_call *call;
	TAILQ_FOREACH(call, &c->calls, link)
		if (call->line && !call->failed.code && call_status(call) / 100 == 2 &&
		    (!call->is_good || (call->size && memchr(call->text, '\n', call->size))))
			return call;
	return NULL;
}

/* A handler may drop any call, so the list of calls is searched again after each handler. */
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
		else if (!deliver_lines(call) && is_there(c, id))
			call_finish(call, CURLE_WRITE_ERROR);
	}
	for (CURLMsg *message; (message = c->curl->multi_info_read(c->multi, &left));) {
		call = message->msg == CURLMSG_DONE ? find_call(c, message->easy_handle) : NULL;
		if (call)
			call_finish(call, (int)message->data.result);
	}
}

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

#define ROW(name) SYMBOL_ROW(struct curl, curl_, name)
static const struct symbol_row rows[] = { CURL_FUNCTIONS(ROW) };

static int load_curl(const struct curl **ret, struct error *err)
{
	static struct curl curl;
	static bool is_ready;
	/* libcurl built with OpenSSL or, if that is missing, with GnuTLS: a machine may have either. */
	int r = is_ready ? 0
			 : symbols_load("libcurl.so.4", "libcurl-gnutls.so.4", rows,
					sizeof(rows) / sizeof(rows[0]), &curl,
					"the Kubernetes API needs libcurl", err);
	if (r < 0)
		return r;
	CURLcode code = is_ready ? CURLE_OK : curl.global_init(CURL_GLOBAL_DEFAULT);
	if (code != CURLE_OK)
		return error_set(err, EIO,
				 "libcurl can't be initialized (curl_global_init: error %d): check the "
				 "packages of libcurl and of its TLS library",
				 (int)code);
	is_ready = true;
	*ret = &curl;
	return 0;
}

int kube_client_new(const struct kube_access *access, struct kube_client **ret, struct error *err)
{
	const struct curl *curl;
	int r = load_curl(&curl, err);
	if (r < 0)
		return r;
	struct kube_client *c = calloc(1, sizeof(*c));
	if (!c)
		return error_set_errno(err, ENOMEM, "Kubernetes client");
	*c = (struct kube_client){ .curl = curl, .access = access };
	c->curl_alarm = (struct alarm){ .handler = curl_due, .data = c };
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
