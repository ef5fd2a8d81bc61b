#include "daemon/containers/engine/engine_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/util/worker.h"

struct question {
	STAILQ_ENTRY(question) link;
	struct container container;
	bool is_known;
	struct engine_name name;
};
STAILQ_HEAD(question_list, question);

struct socket_state {
	unsigned failures; /* failures in a row */
	uint64_t not_before_ns;
	bool is_logged;
};

struct engine_names {
	struct engines engines;
	engine_names_answer answer;
	void *data;
	struct worker worker;
	struct socket_state state[ENGINES_MAX]; /* used by the thread only */
	/* questions that wait for the thread, answers that wait for the main thread; guarded by the worker's lock */
	struct question_list asked, answered;
	unsigned asked_count;
	int answered_fd;
	struct loop_source *source;
};

uint64_t engine_names_retry_ns(unsigned failures)
{
	uint64_t ns = ENGINE_AGAIN_NS;
	for (unsigned i = 1; i < failures && ns < ENGINE_AGAIN_MOST_NS; i++)
		ns *= 2;
	return ns < ENGINE_AGAIN_MOST_NS ? ns : ENGINE_AGAIN_MOST_NS;
}

static void note_failure(struct engine_names *n, unsigned i, int r)
{
	struct socket_state *s = &n->state[i];
	s->not_before_ns = clock_now_ns() + engine_names_retry_ns(++s->failures);
	if (s->is_logged || r == -ECANCELED)
		return;
	s->is_logged = true;
	log_warning("%s at %s can't be asked for the names of containers: %s; containers are "
		    "shown by their ids, and allotd asks again (logged once)",
		    engine_kind_name(&n->engines.item[i]), n->engines.item[i].path, strerror(-r));
}

/* A missing socket is not a failure: most machines have only one of the four engines, and another may be installed later. */
static bool has_socket(const char *path)
{
	return access(path, F_OK) == 0;
}

static void find_name(struct engine_names *n, struct question *q)
{
	for (unsigned i = 0; i < n->engines.count && !q->is_known; i++) {
		const struct engine *e = &n->engines.item[i];
		uint64_t now_ns = clock_now_ns();
		if (!engine_may_own(e, &q->container) || now_ns < n->state[i].not_before_ns ||
		    !has_socket(e->path))
			continue;
		int r = engine_query(e, &q->container, n->worker.stop_fd, now_ns + ENGINE_ASK_NS,
				     &q->name);
		if (r < 0 && r != -ENOENT) {
			note_failure(n, i, r);
			continue;
		}
		n->state[i] = (struct socket_state){ .is_logged = n->state[i].is_logged };
		q->is_known = r >= 0;
	}
}

static void *run(void *data)
{
	struct engine_names *n = data;
	pthread_mutex_lock(&n->worker.lock);
	while (!n->worker.stop) {
		struct question *q = STAILQ_FIRST(&n->asked);
		if (!q) {
			pthread_cond_wait(&n->worker.wake, &n->worker.lock);
			continue;
		}
		STAILQ_REMOVE_HEAD(&n->asked, link);
		pthread_mutex_unlock(&n->worker.lock);
		find_name(n, q);
		pthread_mutex_lock(&n->worker.lock);
		STAILQ_INSERT_TAIL(&n->answered, q, link);
		eventfd_write(n->answered_fd, 1);
	}
	pthread_mutex_unlock(&n->worker.lock);
	return NULL;
}

static struct question *take_answer(struct engine_names *n)
{
	pthread_mutex_lock(&n->worker.lock);
	struct question *q = STAILQ_FIRST(&n->answered);
	if (q) {
		STAILQ_REMOVE_HEAD(&n->answered, link);
		n->asked_count--;
	}
	pthread_mutex_unlock(&n->worker.lock);
	return q;
}

static void answered(void *data, uint32_t events)
{
	struct engine_names *n = data;
	struct question *q;
	uint64_t count;
	ssize_t r = read(n->answered_fd, &count, sizeof(count));
	(void)r;
	while ((q = take_answer(n))) {
		n->answer(n->data, q->container.id, q->is_known ? &q->name : NULL);
		free(q);
	}
}

bool engine_names_request(struct engine_names *n, const struct container *container)
{
	if (!n)
		return false;
	struct question *q = calloc(1, sizeof(*q));
	if (!q)
		return false;
	q->container = *container;
	pthread_mutex_lock(&n->worker.lock);
	bool has_room = n->asked_count < ENGINE_QUESTIONS_MAX;
	if (has_room) {
		STAILQ_INSERT_TAIL(&n->asked, q, link);
		n->asked_count++;
		pthread_cond_signal(&n->worker.wake);
	}
	pthread_mutex_unlock(&n->worker.lock);
	if (!has_room)
		free(q);
	return has_room;
}

static void free_list(struct question_list *list)
{
	struct question *q;
	while ((q = STAILQ_FIRST(list))) {
		STAILQ_REMOVE_HEAD(list, link);
		free(q);
	}
}

static void free_parts(struct engine_names *n)
{
	free_list(&n->asked);
	free_list(&n->answered);
	loop_remove(n->source);
	close_fd(&n->answered_fd);
	free(n);
}

int engine_names_start(struct loop *loop, const struct engines *engines, engine_names_answer answer,
		       void *data, struct engine_names **ret, struct error *err)
{
	*ret = NULL;
	if (!engines->count)
		return 0;
	struct engine_names *n = calloc(1, sizeof(*n));
	if (!n)
		return error_set_errno(err, ENOMEM, "names of containers");
	n->engines = *engines;
	n->answer = answer;
	n->data = data;
	STAILQ_INIT(&n->asked);
	STAILQ_INIT(&n->answered);
	n->answered_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int r = n->answered_fd < 0 ? -errno : 0;
	if (r >= 0)
		r = loop_add(loop, n->answered_fd, EPOLLIN, answered, n, &n->source);
	if (r < 0)
		r = error_set_errno(err, -r, "names of containers");
	else
		r = worker_start(&n->worker, "names of containers", run, n, err);
	if (r < 0) {
		free_parts(n);
		return r;
	}
	*ret = n;
	return 0;
}

struct engine_names *engine_names_stop(struct engine_names *n)
{
	if (!n)
		return NULL;
	worker_stop(&n->worker);
	free_parts(n);
	return NULL;
}
