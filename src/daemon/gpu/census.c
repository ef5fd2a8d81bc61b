/* The census thread reads NVML, and tells the main thread through an eventfd that a reading is complete. */
#include "daemon/gpu/census.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/gpu/health/health.h"
#include "daemon/state/node/subsystem.h"
#include "daemon/state/tenant.h"
#include "daemon/util/worker.h"

struct census {
	struct node *node;
	struct worker worker;
	/* a census was requested and not begun; guarded by the worker's lock, like with_use */
	bool wanted;
	bool with_use; /* the next census also reads each process's use of the cards */
	/* main thread: a census was requested, and its reading is not complete */
	bool under_way;
	uint64_t since_ns; /* time of the request of the census under way */
	int ready_fd;      /* eventfd that the thread increments when a reading is complete */
	uint64_t cost_ns;  /* processor time of the last reading; owned like `card` */
	struct loop_source *source;
	struct census_stability stability; /* owned like `card` */
	bool is_paused; /* periodic censuses are paused until something changes */
	/* belongs to the thread from a request until it writes to ready_fd, else to the main thread */
	struct census_card card[NODE_MAX_CARDS];
};

static void read_use(struct node *node, unsigned index, struct census_card *c)
{
	struct error err = { 0 };
	c->use_count = 0;
	c->use_known = node->backend->use &&
		       node->backend->use(node->gpu, index, c->use_since_us, c->use,
					  CENSUS_MAX_PROCESSES, &c->use_count, &err) >= 0;
	c->busy_known = node->backend->busy &&
			node->backend->busy(node->gpu, index, &c->busy_share, &err) >= 0;
	for (size_t i = 0; c->use_known && i < c->use_count; i++)
		if (c->use[i].stamp_us > c->use_since_us)
			c->use_since_us = c->use[i].stamp_us;
}

static void read_card(struct node *node, unsigned index, struct census_card *c, bool with_use)
{
	struct error err = { 0 };
	size_t count = 0;
	c->begun_ns = clock_now_ns();
	c->memory_known = node->backend->memory(node->gpu, index, &c->memory, &err) >= 0;
	c->processes_known = node->backend->processes(node->gpu, index, c->process,
						      CENSUS_MAX_PROCESSES, &count, &err) >= 0;
	c->process_count = count < CENSUS_MAX_PROCESSES ? count : CENSUS_MAX_PROCESSES;
	if (!c->memory_known || !c->processes_known)
		log_debug("census: %s", err.text);
	c->use_known = false;
	if (with_use)
		read_use(node, index, c);
}

static void *run(void *data)
{
	struct census *census = data;
	uint64_t one = 1;
	prctl(PR_SET_NAME, "allot-census");
	pthread_mutex_lock(&census->worker.lock);
	for (;;) {
		while (!census->wanted && !census->worker.stop)
			pthread_cond_wait(&census->worker.wake, &census->worker.lock);
		if (census->worker.stop)
			break;
		census->wanted = false;
		bool with_use = census->with_use;
		pthread_mutex_unlock(&census->worker.lock);
		uint64_t before_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
		for (unsigned i = 0; i < census->node->card_count; i++)
			read_card(census->node, i, &census->card[i], with_use);
		census->cost_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - before_ns;
		ssize_t n = write(census->ready_fd, &one, sizeof(one));
		(void)n; /* the counter cannot overflow: one reading at a time */
		pthread_mutex_lock(&census->worker.lock);
	}
	pthread_mutex_unlock(&census->worker.lock);
	return NULL;
}

/*
 * Random, with census_every_ns as its mean. If the times of censuses were predictable, a tenant could free its excess memory
 * before each census, and never be noticed.
 */
static uint64_t next_interval_ns(const struct node *node)
{
	uint64_t number, every_ns = node->census_every_ns;
	if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != sizeof(number))
		number = clock_now_ns();
	return every_ns / 20 + number % (every_ns * 19 / 10);
}

#define MARK_BEGIN UINT64_C(0xcbf29ce484222325) /* FNV-1a over 64-bit words */
#define MARK_PRIME UINT64_C(0x100000001b3)

static uint64_t mix(uint64_t mark, uint64_t word)
{
	mark = (mark ^ word) * MARK_PRIME;
	return mark ^ (mark >> 32);
}

static uint64_t mark_ledgers(const struct node *node)
{
	uint64_t mark = MARK_BEGIN;
	const struct tenant *t;
	TAILQ_FOREACH(t, &node->tenants, link)
		for (unsigned i = 0; i < t->slot_limit; i++)
			for (unsigned d = 0; t->process[i] && d < t->terms.device_count; d++) {
				const struct region_slot_device *s =
					&t->region.report->slot[i].device[d];
				mark = mix(mark, (uint64_t)t->process[i]->pid);
				mark = mix(mark, atomic_load(&s->used_bytes));
				mark = mix(mark, atomic_load(&s->context_used_bytes));
				mark = mix(mark, atomic_load(&s->fresh_bytes));
			}
	return mark;
}

static uint64_t mark_reading(const struct census *census)
{
	uint64_t mark = MARK_BEGIN;
	for (unsigned i = 0; i < census->node->card_count; i++) {
		const struct census_card *c = &census->card[i];
		mark = mix(mark, c->memory_known ? c->memory.used_bytes : UINT64_MAX);
		for (size_t k = 0; c->processes_known && k < c->process_count; k++) {
			mark = mix(mark, (uint64_t)c->process[k].pid);
			mark = mix(mark, c->process[k].used_bytes);
		}
	}
	return mark;
}

/* True if no card's memory use has changed since the last census. */
static bool are_cards_same(const struct census *census, uint64_t now_ns)
{
	const struct node *node = census->node;
	for (unsigned i = 0; i < node->card_count; i++) {
		uint64_t bytes;
		if (!census->card[i].memory_known || !census->card[i].processes_known ||
		    !health_used_bytes(node->health, i, now_ns, &bytes) ||
		    bytes != census->card[i].memory.used_bytes)
			return false;
	}
	return true;
}

static bool may_pause(const struct census *census, uint64_t now_ns)
{
	const struct node *node = census->node;
	return !census->under_way && !census->with_use &&
	       census_is_stable(&census->stability, mark_ledgers(node), node->config.census_ns,
				now_ns) &&
	       are_cards_same(census, now_ns) && !any_needs_census(node);
}

void census_resume_if_changed(struct node *node)
{
	struct census *census = node->census;
	uint64_t now_ns = clock_now_ns();
	if (!census || !census->is_paused || census->under_way || may_pause(census, now_ns))
		return;
	census->is_paused = false;
	/* The census must not come earlier than the interval allows. */
	uint64_t due_ns = census->stability.last_ns + next_interval_ns(node);
	if (due_ns <= now_ns)
		census_request(census);
	else if (node->populated)
		loop_arm(node->census_timer, due_ns - now_ns, node->census_every_ns);
}

void census_request_if_changed(struct node *node)
{
	if (!may_pause(node->census, clock_now_ns()))
		census_request(node->census);
}

/* Sets the timer for the next periodic census, or pauses periodic censuses. Call right after a census. */
static void arm_next(struct census *census)
{
	struct node *node = census->node;
	uint64_t now_ns = clock_now_ns();
	node->census_every_ns = census_every_ns(node->config.census_ns, census->cost_ns);
	census_stability_note(&census->stability, mark_reading(census), mark_ledgers(node), now_ns);
	census->is_paused = may_pause(census, now_ns);
	if (census->is_paused)
		loop_disarm(node->census_timer);
	else if (node->populated)
		loop_arm(node->census_timer, next_interval_ns(node), node->census_every_ns);
}

static void reading_ready(void *data, uint32_t events)
{
	struct census *census = data;
	struct node *node = census->node;
	uint64_t count;
	if (read(census->ready_fd, &count, sizeof(count)) < 0)
		return;
	census->under_way = false;
	arm_next(census);
	NOTIFY(node, census_read, node, census->card);
}

/*
 * Notes the ledgers before NVML is read: if a ledger changes meanwhile, the comparison uses the higher value. First publishes
 * the census number: each library then starts to record its ledger's peak, so no rise is missed.
 */
static void note_ledgers(struct node *node)
{
	struct tenant *t;
	TAILQ_FOREACH(t, &node->tenants, link)
		atomic_fetch_add(&t->region.control->census, 1);
	atomic_thread_fence(memory_order_seq_cst);
	TAILQ_FOREACH(t, &node->tenants, link)
		for (unsigned i = 0; i < t->slot_limit; i++)
			for (unsigned d = 0; t->process[i] && d < t->terms.device_count; d++) {
				struct region_slot_device *s = &t->region.report->slot[i].device[d];
				struct process_census *c = &t->process[i]->census[d];
				c->used_before = process_used_bytes(t->process[i], d);
				c->fresh_before = atomic_load(&s->fresh_bytes);
				c->swapped_before = process_swapped_bytes(t->process[i], d);
				c->was_moving = process_is_moving(t->process[i]);
			}
}

bool census_is_due(struct node *node)
{
	struct tenant *t;
	TAILQ_FOREACH(t, &node->tenants, link)
		for (unsigned i = 0; i < t->slot_limit; i++)
			for (unsigned d = 0; t->process[i] && d < t->terms.device_count; d++)
				if (atomic_load(&t->region.report->slot[i].device[d].fresh_bytes))
					return true;
	return false;
}

void census_tenants_changed(struct node *node)
{
	/* If a tenant waits for memory, request the first census now, because memory is granted only after it. */
	if (node->populated && node->waiter_count && !node->foreign_known && node->census)
		census_request(node->census);
}

void census_populated_changed(struct node *node)
{
	if (!node->populated) {
		loop_disarm(node->census_timer);
		return;
	}
	node->census_every_ns = node->config.census_ns;
	loop_arm(node->census_timer, node->census_every_ns, node->census_every_ns);
}

void census_request(struct census *census)
{
	if (census->under_way)
		return;
	census->under_way = true;
	census->since_ns = clock_now_ns();
	note_ledgers(census->node);
	pthread_mutex_lock(&census->worker.lock);
	census->wanted = true;
	pthread_cond_signal(&census->worker.wake);
	pthread_mutex_unlock(&census->worker.lock);
}

uint64_t census_wait_ns(const struct census *census, uint64_t now_ns)
{
	return census->under_way ? now_ns - census->since_ns : 0;
}

void census_enable_use(struct census *census, bool wanted)
{
	pthread_mutex_lock(&census->worker.lock);
	census->with_use = wanted;
	pthread_mutex_unlock(&census->worker.lock);
}

static void free_parts(struct census *census)
{
	loop_remove(census->source);
	close_fd(&census->ready_fd);
	for (unsigned i = 0; i < NODE_MAX_CARDS; i++) {
		free(census->card[i].process);
		free(census->card[i].use);
	}
	free(census);
}

static int prepare(struct census *census)
{
	for (unsigned i = 0; i < census->node->card_count; i++) {
		census->card[i].process = calloc(CENSUS_MAX_PROCESSES,
						 sizeof(*census->card[i].process));
		census->card[i].use = calloc(CENSUS_MAX_PROCESSES, sizeof(*census->card[i].use));
		if (!census->card[i].process || !census->card[i].use)
			return -ENOMEM;
	}
	census->ready_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (census->ready_fd < 0)
		return -errno;
	return loop_add(census->node->loop, census->ready_fd, EPOLLIN, reading_ready, census,
			&census->source);
}

int census_start(struct node *node, struct census **ret, struct error *err)
{
	struct census *census = calloc(1, sizeof(*census));
	if (!census)
		return error_set_errno(err, ENOMEM, "can't start the thread that reads NVML");
	census->node = node;
	census->ready_fd = -1;
	int r = prepare(census);
	if (r < 0)
		error_set_errno(err, -r, "can't start the thread that reads NVML");
	else
		r = worker_start(&census->worker, "census", run, census, err);
	if (r < 0) {
		free_parts(census);
		return r;
	}
	*ret = census;
	return 0;
}

struct census *census_stop(struct census *census)
{
	if (!census)
		return NULL;
	worker_stop(&census->worker);
	free_parts(census);
	return NULL;
}
