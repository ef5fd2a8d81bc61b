#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "kube/client/kube_client.h"
#include "kube/client/client_inside.h"
#include "kube/util/sanitize.h"
#include "kube/util/untrusted_json.h"

#define CONNECT_TIMEOUT_MS 10000L
/*
 * A connection that is silent for KEEPALIVE_S is probed, and closed after UNACKED_MS without an acknowledgement. So even a
 * watch without events notices that the server is gone.
 */
#define KEEPALIVE_S 20L
#define UNACKED_MS 30000

static bool make_room(struct kube_call *call, size_t more)
{
	size_t wanted = call->size + more + 1;
	if (wanted > KUBE_BODY_MAX) {
		error_set(&call->failed, EFBIG, "%s: the answer is larger than %u MiB", call->what,
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

int call_status(const struct kube_call *call)
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

static int code_of_status(int status)
{
	switch (status) {
	case 401:
	case 403: return EACCES;
	case 404: return ENOENT;
	case 409: return EAGAIN; /* another client changed the object first */
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
	a->bytes = call->size;
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
	a->status = call_status(call);
	a->retry_after_ns = retry_after_ns(call);
	bool is_good = a->status / 100 == 2;
	if (!call->line || !is_good)
		a->object = untrusted_json_parse(call->text ? call->text : "", call->size, 0, &why);
	if (is_good && !call->line && !a->object) {
		error_set(&a->err, EPROTO, "%s: the answer is not JSON: %s", call->what, why.text);
	} else if (!is_good) {
		const char *message = json_string_value(json_object_get(a->object, "message"));
		error_set(&a->err, code_of_status(a->status), "%s: %d%s%.300s", call->what,
			  a->status, message ? ": " : "", message ? message : "");
	}
}

void call_finish(struct kube_call *call, int result)
{
	struct kube_answer answer = { 0 };
	read_answer(call, result, &answer);
	error_sanitize(&answer.err, 0);
	kube_done done = call->done;
	void *data = call->data;
	kube_call_drop(call);
	done(data, &answer);
	json_decref(answer.object);
}

static void tell_refused(void *data)
{
	call_finish(data, CURLE_FAILED_INIT);
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

static int add_bearer(struct kube_call *call, const char *header, const char *token)
{
	cleanup_free char *value = NULL;
	if (strpbrk(token, "\r\n"))
		return error_set(&call->failed, EINVAL,
				 "the bearer token has a line break: it must be one line");
	if (asprintf(&value, "Bearer %s", token) < 0)
		value = NULL;
	return value ? add_header(call, header, value) : -ENOMEM;
}

static int add_token(struct kube_call *call)
{
	const struct kube_access *a = call->client->access;
	cleanup_free char *fresh = NULL;
	int r = a->token_file ? access_read_file(a->token_file, &fresh, &call->failed) : 0;
	const char *token = fresh ? fresh : a->token;
	return r < 0 || !token ? r : add_bearer(call, "Authorization", token);
}

/* The kernel closes the connection early if sent bytes stay unacknowledged. */
static int on_new_socket(void *data, curl_socket_t fd, curlsocktype purpose)
{
	int unacked_ms = UNACKED_MS;
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacked_ms, sizeof(unacked_ms));
	return CURL_SOCKOPT_OK;
}

static CURLcode set_blob(struct kube_call *call, CURLoption option, char *pem)
{
	struct curl_blob blob = { .data = pem,
				  .len = pem ? strlen(pem) : 0,
				  .flags = CURL_BLOB_NOCOPY };
	return pem ? call->client->curl->easy_setopt(call->easy, option, &blob) : CURLE_OK;
}

/* Fails if libcurl cannot use the CA or the client certificate, because libcurl would then connect without them. */
static int set_access(struct kube_call *call)
{
	const struct kube_access *a = call->client->access;
	const struct curl *curl = call->client->curl;
	CURLcode code = set_blob(call, CURLOPT_CAINFO_BLOB, a->ca_pem);
	if (code == CURLE_OK)
		code = set_blob(call, CURLOPT_SSLCERT_BLOB, a->certificate_pem);
	if (code == CURLE_OK)
		code = set_blob(call, CURLOPT_SSLKEY_BLOB, a->key_pem);
	if (code == CURLE_OK)
		code = curl->easy_setopt(call->easy, CURLOPT_SSL_VERIFYPEER,
					 a->is_unverified ? 0L : 1L);
	if (code == CURLE_OK)
		code = curl->easy_setopt(call->easy, CURLOPT_SSL_VERIFYHOST,
					 a->is_unverified ? 0L : 2L);
	return code == CURLE_OK
		       ? 0
		       : error_set(&call->failed, EOPNOTSUPP,
				   "this libcurl can't use the CA or the client certificate for "
				   "the API server (%s): install a libcurl with OpenSSL",
				   curl->easy_strerror(code));
}

/* HTTP/1.1 gives each watch its own connection, so a stuck watch blocks no other call. */
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

static int start_transfer(struct kube_call *call, const struct kube_request *request)
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
	int r = set_access(call);
	if (r >= 0)
		r = add_header(call, "Accept", KUBE_JSON);
	if (r >= 0 && request->body) {
		call->body = strdup(request->body);
		r = call->body ? add_header(call, "Content-Type", request->type) : -ENOMEM;
		c->curl->easy_setopt(call->easy, CURLOPT_POSTFIELDS, call->body);
	}
	if (r >= 0)
		r = add_token(call);
	if (r >= 0 && request->proxied_token)
		r = add_bearer(call, KUBE_PROXIED_AUTHORIZATION, request->proxied_token);
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
	call->refused = (struct alarm){ .handler = tell_refused, .data = call };
	snprintf(call->what, sizeof(call->what), "%s %.*s", request->method,
		 (int)strcspn(request->path, "?"), request->path);
	TAILQ_INSERT_TAIL(&client->calls, call, link);
	if (start_transfer(call, request) < 0)
		alarm_set(client->reactor, &call->refused, 0);
	return call;
}
