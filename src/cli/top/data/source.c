#include "cli/top/data/source.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define END_WAIT_S 1
#define POLL_NS (200 * NSEC_PER_MSEC) /* how often to ask how far a move of memory has come */

struct source {
	const struct daemon_target *target;
	uint64_t interval_ns;
	int fd;
	pthread_t thread;
	pthread_mutex_t lock; /* protects the fields below; client is used by the thread only */
	pthread_cond_t wake;
	bool is_ending;
	bool has_sample;
	struct sample sample;
	struct source_outcome outcome;
	/* The change that is requested or in progress. op is NULL if there is none. */
	const char *op;
	json_t *body;
	/* Request that asks how far a move of a tenant's memory has come; NULL if no memory is being moved. */
	json_t *move;
	struct client *client;
};

static void notify(struct source *source)
{
	eventfd_write(source->fd, 1);
}

static void publish(struct source *source, const struct sample *sample)
{
	pthread_mutex_lock(&source->lock);
	if (source->has_sample)
		sample_free(&source->sample);
	source->sample = *sample;
	source->has_sample = true;
	notify(source);
	pthread_mutex_unlock(&source->lock);
}

static void sample_once(struct source *source)
{
	struct sample sample = { 0 };
	struct error err = { 0 };

	if (sample_take(source->target, &source->client, false, &sample, &err) < 0)
		sample = (struct sample){ .trouble = err };
	publish(source, &sample);
}

static void finish(struct source *source, const struct error *err, const json_t *reply)
{
	const json_t *warnings = json_object_get(reply, "warnings");
	const char *warning = json_string_value(json_array_get(warnings, 0));

	pthread_mutex_lock(&source->lock);
	source->outcome = (struct source_outcome){ .is_set = true, .error = *err };
	snprintf(source->outcome.warning, sizeof(source->outcome.warning), "%s",
		 warning ? warning : "");
	source->op = NULL;
	json_decref(source->move);
	source->move = NULL;
	notify(source);
	pthread_mutex_unlock(&source->lock);
}

/*
 * Sends `body`: a change, or a request that asks how far a move of memory has come. `move` is the request to ask that the next
 * time. It is stored in the source if memory is still moving, else freed. Takes ownership of `body` and `move`.
 */
static void change_once(struct source *source, const char *op, json_t *body, json_t *move)
{
	struct error err = { 0 };
	cleanup_json json_t *reply = NULL;
	int r = source->client ? 0 : daemon_find(source->target, &source->client, &err);

	if (r < 0)
		json_decref(body);
	else
		r = client_request(source->client, op, body, &reply, &err);
	if (r == -ECONNRESET || r == -ETIMEDOUT)
		source->client = client_free(source->client);
	if (r < 0 || !json_is_true(json_object_get(reply, "moving"))) {
		finish(source, &err, reply);
		json_decref(move);
		return;
	}
	pthread_mutex_lock(&source->lock);
	source->move = move;
	pthread_mutex_unlock(&source->lock);
}

static json_t *make_move(const json_t *body)
{
	return json_pack("{s:O, s:b}", "name", json_object_get(body, "name"), "poll", 1);
}

/* Sends the requested change, else source->move; false if there is neither. Called with the lock; releases it meanwhile. */
static bool serve(struct source *source)
{
	json_t *body = source->body, *move = source->move, *request;

	if (!body && !move)
		return false;
	source->body = source->move = NULL;
	if (body)
		move = make_move(body);
	else
		body = json_incref(move);
	pthread_mutex_unlock(&source->lock);
	/* change_once() takes ownership, so pass a copy: `body` may be `move`, which is sent again later. */
	request = move ? json_copy(body) : NULL;
	if (request) {
		change_once(source, source->op, request, move);
	} else {
		struct error err = { 0 };

		error_set(&err, ENOMEM, "out of memory");
		finish(source, &err, NULL);
		json_decref(move);
	}
	json_decref(body);
	pthread_mutex_lock(&source->lock);
	return true;
}

static void *run(void *data)
{
	struct source *source = data;
	uint64_t due_ns = 0;

	pthread_mutex_lock(&source->lock);
	while (!source->is_ending) {
		bool is_new = source->body;
		struct timespec until;

		if (serve(source) && is_new)
			due_ns = 0; /* sample at once, to show the change */
		if (clock_now_ns() >= due_ns) {
			pthread_mutex_unlock(&source->lock);
			due_ns = clock_now_ns() + source->interval_ns;
			sample_once(source);
			pthread_mutex_lock(&source->lock);
			continue;
		}
		until = clock_to_timespec(source->move && clock_now_ns() + POLL_NS < due_ns
						  ? clock_now_ns() + POLL_NS
						  : due_ns);
		if (!source->is_ending && !source->body)
			pthread_cond_timedwait(&source->wake, &source->lock, &until);
	}
	pthread_mutex_unlock(&source->lock);
	return NULL;
}

/* Blocks all signals in the thread: the main thread, which reads the keyboard, handles signals such as SIGWINCH. */
static int start(struct source *source)
{
	sigset_t all, before;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&source->thread, NULL, run, source);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r;
}

static void destroy(struct source *source)
{
	close_fd(&source->fd);
	client_free(source->client);
	json_decref(source->body);
	json_decref(source->move);
	if (source->has_sample)
		sample_free(&source->sample);
	pthread_cond_destroy(&source->wake);
	pthread_mutex_destroy(&source->lock);
	free(source);
}

int source_open(const struct daemon_target *target, struct client *client, uint64_t interval_ns,
		struct source **ret_source, struct error *err)
{
	struct source *source = calloc(1, sizeof(*source));
	pthread_condattr_t attributes;
	int r;

	if (!source) {
		client_free(client);
		return error_set(err, ENOMEM, "out of memory");
	}
	source->target = target;
	source->client = client;
	source->interval_ns = interval_ns;
	pthread_mutex_init(&source->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&source->wake, &attributes);
	pthread_condattr_destroy(&attributes);
	source->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = source->fd < 0 ? errno : start(source);
	if (r != 0) {
		destroy(source);
		return error_set_errno(err, r, "can't start the thread that talks to the daemon");
	}
	*ret_source = source;
	return 0;
}

struct source *source_close(struct source *source)
{
	struct timespec until;

	if (!source)
		return NULL;
	pthread_mutex_lock(&source->lock);
	source->is_ending = true;
	pthread_cond_signal(&source->wake);
	pthread_mutex_unlock(&source->lock);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += END_WAIT_S;
	if (pthread_timedjoin_np(source->thread, NULL, &until) == 0)
		destroy(source);
	return NULL;
}

int source_fd(const struct source *source)
{
	return source->fd;
}

bool source_take(struct source *source, struct sample *ret_sample,
		 struct source_outcome *ret_outcome)
{
	uint64_t count;
	ssize_t n = read(source->fd, &count, sizeof(count));
	bool has_sample;

	(void)n;
	pthread_mutex_lock(&source->lock);
	has_sample = source->has_sample;
	if (has_sample)
		*ret_sample = source->sample;
	source->has_sample = false;
	*ret_outcome = source->outcome;
	source->outcome.is_set = false;
	pthread_mutex_unlock(&source->lock);
	return has_sample;
}

int source_change(struct source *source, const char *op, json_t *body, struct error *err)
{
	int r = 0;

	if (!body)
		return error_set(err, ENOMEM, "out of memory");
	pthread_mutex_lock(&source->lock);
	if (source->op) {
		r = error_set(err, EBUSY,
			      "the previous change is not done yet: try again in a moment");
		json_decref(body);
	} else {
		source->op = op;
		source->body = body;
		pthread_cond_signal(&source->wake);
	}
	pthread_mutex_unlock(&source->lock);
	return r;
}
