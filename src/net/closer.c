#include "net/closer.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

#define QUEUES 64 /* each with a thread; the first serves only root */
#define STACK_BYTES ((size_t)65536)
/* while one close() takes longer than this, the queue counts as stuck */
#define STUCK_NS NSEC_PER_SEC
#define STUCK_COUNT 1024
#define EMPTY_READS 16 /* most reads to empty a socket, because its peer may keep writing */

struct waiting {
	struct waiting *next;
	int fd;
};

struct queue {
	pthread_mutex_t lock;
	pthread_cond_t filled;
	bool has_thread;
	struct waiting *first, **last;
	unsigned count;
	uint64_t since_ns; /* when the current close() began; 0 if none */
};

static struct queue queues[QUEUES];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void prepare(void)
{
	for (unsigned i = 0; i < QUEUES; i++) {
		pthread_mutex_init(&queues[i].lock, NULL);
		pthread_cond_init(&queues[i].filled, NULL);
		queues[i].last = &queues[i].first;
	}
}

static struct queue *queue_of(uid_t uid)
{
	pthread_once(&once, prepare);
	return &queues[uid ? 1 + uid % (QUEUES - 1) : 0];
}

static void empty_and_close(int fd)
{
	char unread[4096];
	for (unsigned i = 0; i < EMPTY_READS; i++)
		if (recv(fd, unread, sizeof(unread), MSG_DONTWAIT) <= 0)
			break;
	close(fd);
}

static void *run(void *data)
{
	struct queue *q = data;
	pthread_mutex_lock(&q->lock);
	for (;;) {
		while (!q->first)
			pthread_cond_wait(&q->filled, &q->lock);
		struct waiting *w = q->first;
		q->first = w->next;
		if (!q->first)
			q->last = &q->first;
		q->since_ns = clock_now_ns();
		pthread_mutex_unlock(&q->lock);
		empty_and_close(w->fd);
		free(w);
		pthread_mutex_lock(&q->lock);
		q->since_ns = 0;
		q->count--;
	}
	return NULL;
}

/* The new thread blocks all signals, so that they go to the program's own threads. */
static bool start_thread(struct queue *q)
{
	pthread_attr_t attributes;
	pthread_t thread;
	sigset_t all, before;
	sigfillset(&all);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	bool started = pthread_create(&thread, &attributes, run, q) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return started;
}

void closer_close(uid_t uid, int fd)
{
	struct queue *q = queue_of(uid);
	struct waiting *w = malloc(sizeof(*w));
	pthread_mutex_lock(&q->lock);
	if (w && !q->has_thread)
		q->has_thread = start_thread(q);
	if (w && q->has_thread) {
		*w = (struct waiting){ .fd = fd };
		*q->last = w;
		q->last = &w->next;
		q->count++;
		pthread_cond_signal(&q->filled);
		fd = -1;
		w = NULL;
	}
	pthread_mutex_unlock(&q->lock);
	free(w);
	/* Without memory or a thread, close the descriptor here, although that may block. */
	if (fd >= 0)
		empty_and_close(fd);
}

bool closer_is_stuck(uid_t uid)
{
	struct queue *q = queue_of(uid);
	pthread_mutex_lock(&q->lock);
	bool is_stuck = q->count >= STUCK_COUNT ||
			(q->since_ns && clock_now_ns() - q->since_ns >= STUCK_NS);
	pthread_mutex_unlock(&q->lock);
	return is_stuck;
}
