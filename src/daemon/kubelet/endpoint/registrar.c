#include "daemon/kubelet/endpoint/registrar.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/kubelet/endpoint/messages.h"
#include "daemon/util/worker.h"
#include "net/grpc_client.h"

#define METHOD "/v1beta1.Registration/Register"
/* timeout of a registration: longer than the 10 s after which the kubelet gives up calling back */
#define PATIENCE_NS (15 * NSEC_PER_SEC)
#define FIRST_RETRY_NS (5 * NSEC_PER_MSEC)
#define LAST_RETRY_NS (10 * NSEC_PER_SEC)
#define REPLY_MOST_BYTES 4096 /* the reply is empty */

struct registrar {
	struct worker worker;
	char *socket, *resource;
	uint8_t *request;
	size_t request_size;
	/* guarded by the worker's lock: */
	/* incremented by registrar_register() and registrar_reset(), so that results of earlier calls are ignored */
	uint64_t wants;
	bool is_wanted;
	uint64_t since_ns;
	struct registrar_figures figures;
	/* used only by the thread: */
	char logged_error[ERROR_TEXT_MAX]; /* "": none since the last success */
};

static int call(struct registrar *r, struct error *err)
{
	cleanup(net_link_close) struct net_link link = { .fd = -1 };
	struct grpc_request request = { .method = METHOD,
					.message = r->request,
					.size = r->request_size,
					.most_bytes = REPLY_MOST_BYTES };
	struct grpc_reply reply;
	int e = net_link_open(&link, r->socket, r->worker.stop_fd, clock_now_ns() + PATIENCE_NS);
	if (e >= 0)
		e = grpc_call_unary(&link, &request, &reply);
	if (e < 0)
		return error_set_errno(err, -e, "%s", r->socket);
	free(reply.message);
	if (reply.status != GRPC_OK)
		return error_set(err, EPROTO,
				 "the kubelet refuses the device plugin: %s (gRPC status %d)",
				 reply.text, (int)reply.status);
	return 0;
}

/* Retries often fail alike, so a text is not logged twice in a row. */
static void log_failure(struct registrar *r, const struct error *err)
{
	if (!strcmp(r->logged_error, err->text))
		return;
	memcpy(r->logged_error, err->text, sizeof(r->logged_error));
	/* Normal, because the kubelet begins to listen some microseconds after it has created its socket. */
	if (err->code == ECONNREFUSED || err->code == ENOENT || err->code == ECANCELED)
		log_debug("device plugin %s: not registered yet: %s", r->resource, err->text);
	else
		log_warning("device plugin %s: can't be registered: %s; trying again", r->resource,
			    err->text);
}

/* Call with the lock held; releases it during the call. Returns true if registered. */
static bool try_once(struct registrar *r)
{
	struct error err = { 0 };
	uint64_t wants = r->wants;
	pthread_mutex_unlock(&r->worker.lock);
	int e = call(r, &err);
	if (e < 0)
		log_failure(r, &err);
	else
		r->logged_error[0] = '\0';
	pthread_mutex_lock(&r->worker.lock);
	r->figures.failures += e < 0;
	if (e < 0 || wants != r->wants)
		return false;
	r->is_wanted = false;
	r->figures.is_registered = true;
	r->figures.registrations++;
	r->figures.last_ns = clock_now_ns() - r->since_ns;
	log_info("device plugin %s: registered, in %.1f ms", r->resource,
		 (double)r->figures.last_ns / (double)NSEC_PER_MSEC);
	return true;
}

static void *run(void *data)
{
	struct registrar *r = data;
	uint64_t retry_ns = FIRST_RETRY_NS, wants = 0;
	prctl(PR_SET_NAME, "allot-registrar");
	pthread_mutex_lock(&r->worker.lock);
	while (!r->worker.stop) {
		if (!r->is_wanted) {
			pthread_cond_wait(&r->worker.wake, &r->worker.lock);
			continue;
		}
		if (wants != r->wants)
			retry_ns = FIRST_RETRY_NS;
		wants = r->wants;
		if (try_once(r) || r->worker.stop || wants != r->wants)
			continue;
		struct timespec at = clock_to_timespec(clock_now_ns() + retry_ns);
		retry_ns = retry_ns * 2 < LAST_RETRY_NS ? retry_ns * 2 : LAST_RETRY_NS;
		pthread_cond_timedwait(&r->worker.wake, &r->worker.lock, &at);
	}
	pthread_mutex_unlock(&r->worker.lock);
	return NULL;
}

static void free_parts(struct registrar *r)
{
	free(r->socket);
	free(r->resource);
	free(r->request);
	free(r);
}

int registrar_start(const char *kubelet_socket, const char *endpoint, const char *resource,
		    bool has_preference, struct registrar **ret, struct error *err)
{
	struct registrar *r = calloc(1, sizeof(*r));
	if (!r)
		return error_set_errno(err, ENOMEM, "registrar");
	r->socket = strdup(kubelet_socket);
	r->resource = strdup(resource);
	r->request = message_register(endpoint, resource, has_preference, &r->request_size);
	int e = r->socket && r->resource && r->request ? 0 : -ENOMEM;
	if (e < 0)
		error_set_errno(err, ENOMEM, "registrar");
	else
		e = worker_start(&r->worker, "registrar", run, r, err);
	if (e < 0)
		free_parts(r);
	else
		*ret = r;
	return e;
}

struct registrar *registrar_stop(struct registrar *r)
{
	if (!r)
		return NULL;
	worker_stop(&r->worker);
	free_parts(r);
	return NULL;
}

static void change(struct registrar *r, bool is_wanted)
{
	pthread_mutex_lock(&r->worker.lock);
	r->wants++;
	r->is_wanted = is_wanted;
	r->since_ns = clock_now_ns();
	r->figures.is_registered = false;
	pthread_cond_signal(&r->worker.wake);
	pthread_mutex_unlock(&r->worker.lock);
}

void registrar_register(struct registrar *r)
{
	change(r, true);
}

void registrar_reset(struct registrar *r)
{
	change(r, false);
}

struct registrar_figures registrar_figures(struct registrar *r)
{
	pthread_mutex_lock(&r->worker.lock);
	struct registrar_figures f = r->figures;
	pthread_mutex_unlock(&r->worker.lock);
	return f;
}
