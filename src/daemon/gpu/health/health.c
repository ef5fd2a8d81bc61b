#include "daemon/gpu/health/health.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/gpu/health/health_inside.h"
#include "daemon/state/node/node.h"
#include "daemon/state/node/subsystem.h"
#include "daemon/util/worker.h"

#define WAIT_MS 500U /* longest wait for a fault; the daemon's end may be delayed by as much */
#define POLL_NS HEALTH_POLL_NS        /* interval at which each card is asked */
#define OLD_NS (3 * POLL_NS)          /* answers older than this are not used */
#define SILENT_NS (10 * NSEC_PER_SEC) /* a call that lasts this long counts as no answer */
#define FAULTS_MOST 64
#define BUSY_LEAST \
	0.1 /* a card is busy if it worked for more than this share of the last sampling period */

struct health_watch {
	struct node *node;
	struct worker worker;
	struct health_ignored ignored;
	int ready_fd; /* eventfd that the thread increments to wake the main thread */
	struct loop_source *source, *timer;
	/* guarded by the worker's lock: */
	struct gpu_fault fault[FAULTS_MOST];
	unsigned fault_count, dropped;
	bool has_answers;
	enum health_answer answer[NODE_MAX_CARDS];
	/* written by the thread, read by the main thread: */
	_Atomic unsigned asked_card;
	_Atomic uint64_t asked_ns; /* 0: no call is in progress */
	/* when the last round ended, if all cards answered in it; else 0 */
	_Atomic uint64_t answered_ns;
	_Atomic uint64_t used_bytes[NODE_MAX_CARDS];
	_Atomic bool is_any_busy;
	/* thread only: rounds since the last reason to wake the main thread (ask_all()), counted up to HEALTH_ANSWERS */
	unsigned rounds;
	/* a card is unhealthy, so each round wakes the main thread; written by the main thread */
	_Atomic bool is_any_bad;
};

/* Called without the lock. Sets *ret_changed if the card's memory use has changed. */
static enum health_answer poll_card(struct health_watch *w, unsigned card, bool *ret_changed)
{
	struct gpu_memory memory;
	struct error err = { 0 };
	atomic_store(&w->asked_card, card);
	atomic_store(&w->asked_ns, clock_now_ns());
	int r = w->node->backend->memory(w->node->gpu, card, &memory, &err);
	atomic_store(&w->asked_ns, 0);
	if (r < 0)
		return r == -ENODEV ? HEALTH_SAYS_LOST : HEALTH_FAILED;
	*ret_changed |= atomic_exchange(&w->used_bytes[card], memory.used_bytes) !=
			memory.used_bytes;
	return HEALTH_ANSWERED;
}

/* Called without the lock. If the driver cannot tell, the card counts as busy. */
static bool is_busy(struct health_watch *w, unsigned card)
{
	struct error err = { 0 };
	double share;
	return !w->node->backend->busy ||
	       w->node->backend->busy(w->node->gpu, card, &share, &err) < 0 || share > BUSY_LEAST;
}

/*
 * Asks for all cards' memory use. A change of use, a missing answer or an unhealthy card is a reason to wake the main thread in
 * this round and the next ones, HEALTH_ANSWERS rounds in all.
 */
static void ask_all(struct health_watch *w)
{
	enum health_answer answer[NODE_MAX_CARDS];
	bool has_changed = false, have_all = true, is_any_busy = false;
	for (unsigned i = 0; i < w->node->card_count; i++) {
		answer[i] = poll_card(w, i, &has_changed);
		have_all &= answer[i] == HEALTH_ANSWERED;
		is_any_busy |= answer[i] == HEALTH_ANSWERED && is_busy(w, i);
	}
	atomic_store(&w->is_any_busy, is_any_busy);
	atomic_store(&w->answered_ns, have_all ? clock_now_ns() : 0);
	if (has_changed || !have_all || atomic_load(&w->is_any_bad))
		w->rounds = 0;
	if (w->rounds == HEALTH_ANSWERS)
		return;
	w->rounds++;
	pthread_mutex_lock(&w->worker.lock);
	memcpy(w->answer, answer, sizeof(w->answer));
	w->has_answers = true;
	pthread_mutex_unlock(&w->worker.lock);
	eventfd_write(w->ready_fd, 1);
}

/* If the driver cannot report faults, sets *can_wait to false and only sleeps. */
static void wait_for_fault(struct health_watch *w, bool *can_wait)
{
	const struct gpu_backend *backend = w->node->backend;
	struct gpu_fault fault;
	struct error err = { 0 };
	int r = *can_wait ? backend->wait_fault(w->node->gpu, WAIT_MS, &fault, &err) : -EOPNOTSUPP;
	if (*can_wait && r == -EOPNOTSUPP)
		log_info("%s: GPU faults are noticed only when an NVML call fails", err.text);
	*can_wait &= r != -EOPNOTSUPP;
	pthread_mutex_lock(&w->worker.lock);
	if (r > 0 && w->fault_count < FAULTS_MOST)
		w->fault[w->fault_count++] = fault;
	else if (r > 0)
		w->dropped++;
	else if (r < 0 && !w->worker.stop) {
		/* wait_fault() may have failed at once, for example for a lost card. Sleep, so that the loop does not spin. */
		struct timespec until = clock_to_timespec(clock_now_ns() + WAIT_MS * NSEC_PER_MSEC);
		pthread_cond_timedwait(&w->worker.wake, &w->worker.lock, &until);
	}
	pthread_mutex_unlock(&w->worker.lock);
	if (r > 0)
		eventfd_write(w->ready_fd, 1);
}

static void *run(void *data)
{
	struct health_watch *w = data;
	bool can_wait = w->node->backend->wait_fault != NULL;
	uint64_t next_ns = clock_now_ns();
	prctl(PR_SET_NAME, "allot-health");
	pthread_mutex_lock(&w->worker.lock);
	while (!w->worker.stop) {
		pthread_mutex_unlock(&w->worker.lock);
		if (clock_now_ns() >= next_ns) {
			ask_all(w);
			next_ns = clock_now_ns() + POLL_NS;
		}
		wait_for_fault(w, &can_wait);
		pthread_mutex_lock(&w->worker.lock);
	}
	pthread_mutex_unlock(&w->worker.lock);
	return NULL;
}

static struct health_time time_now(void)
{
	return (struct health_time){ .now_ns = clock_now_ns(),
				     .now_s = (double)clock_read_ns(CLOCK_REALTIME) / 1e9 };
}

void health_notify(struct node *node, struct card *card)
{
	for (unsigned i = 0; i < node->health_listener_count; i++)
		node->health_listener[i].handler(node->health_listener[i].data, card);
}

static void changed(struct node *node, struct card *card)
{
	char reason[HEALTH_REASON_MAX];
	health_reason(&card->health, reason);
	if (card->health.is_bad)
		log_error("GPU %u (%s) is not healthy: %s: it takes no new tenants", card->index,
			  card->info.uuid_text, reason);
	else
		log_warning("GPU %u (%s) is healthy again", card->index, card->info.uuid_text);
	health_notify(node, card);
}

static void note_fault(struct health_watch *w, const struct gpu_fault *fault,
		       const struct health_time *now)
{
	const struct health_xid *xid = health_find_xid(fault->number);
	if (fault->index >= w->node->card_count)
		return;
	struct card *card = &w->node->card[fault->index];
	card->faults[fault->kind]++;
	if (fault->kind == GPU_FAULT_XID)
		log_warning_of(card->index, "GPU %u: Xid %" PRIu64 "%s%s", card->index,
			       fault->number, xid ? ": " : "", xid ? xid->what : "");
	bool is_change = fault->kind == GPU_FAULT_XID
				 ? health_note_xid(&card->health, fault->number, &w->ignored, now)
				 : health_note_ecc(&card->health, now);
	if (is_change)
		changed(w->node, card);
}

static void note_bad(struct health_watch *w)
{
	bool is_any = false;
	for (unsigned i = 0; i < w->node->card_count; i++)
		is_any |= w->node->card[i].health.is_bad;
	atomic_store(&w->is_any_bad, is_any);
}

static void ready(void *data, uint32_t events)
{
	struct health_watch *w = data;
	struct gpu_fault fault[FAULTS_MOST];
	enum health_answer answer[NODE_MAX_CARDS];
	struct health_time now = time_now();
	uint64_t count;
	if (read(w->ready_fd, &count, sizeof(count)) < 0)
		return;
	pthread_mutex_lock(&w->worker.lock);
	unsigned fault_count = w->fault_count, dropped = w->dropped;
	bool has_answers = w->has_answers;
	memcpy(fault, w->fault, sizeof(fault));
	memcpy(answer, w->answer, sizeof(answer));
	w->fault_count = w->dropped = 0;
	w->has_answers = false;
	pthread_mutex_unlock(&w->worker.lock);
	if (dropped)
		log_warning("%u more GPU faults came faster than they could be read, and were "
			    "dropped: a faulty GPU may still take tenants; look for Xid lines in "
			    "the kernel's log",
			    dropped);
	for (unsigned i = 0; i < fault_count; i++)
		note_fault(w, &fault[i], &now);
	for (unsigned i = 0; has_answers && i < w->node->card_count; i++) {
		struct card *card = &w->node->card[i];
		bool is_change = health_note_answer(&card->health, answer[i], &now);
		is_change ^= health_pass_time(&card->health, w->node->config.health_recover_ns,
					      &now);
		if (is_change)
			changed(w->node, card);
	}
	note_bad(w);
	if (has_answers)
		NOTIFY(w->node, cards_polled, w->node);
}

/* Runs by a timer, because a hanging driver call returns no error. A card is silent if a call for it lasts for SILENT_NS. */
static void look_for_silence(void *data, uint32_t events)
{
	struct health_watch *w = data;
	uint64_t asked_ns = atomic_load(&w->asked_ns), now_ns = clock_now_ns();
	struct card *card = &w->node->card[atomic_load(&w->asked_card)];
	struct health_time now = time_now();
	/* If another call has begun since the first load, `card` may be that call's. */
	bool is_same = atomic_load(&w->asked_ns) == asked_ns;
	if (is_same && asked_ns && now_ns > asked_ns && now_ns - asked_ns >= SILENT_NS &&
	    health_note_answer(&card->health, HEALTH_SILENT, &now))
		changed(w->node, card);
	note_bad(w);
}

bool health_used_bytes(const struct health_watch *w, unsigned card, uint64_t now_ns,
		       uint64_t *ret_bytes)
{
	uint64_t answered_ns = w ? atomic_load(&w->answered_ns) : 0;
	if (!answered_ns || (now_ns > answered_ns && now_ns - answered_ns > OLD_NS))
		return false;
	*ret_bytes = atomic_load(&w->used_bytes[card]);
	return true;
}

bool health_is_any_busy(const struct health_watch *w)
{
	return !w || !atomic_load(&w->answered_ns) || atomic_load(&w->is_any_busy);
}

bool health_accepts_tenants(const struct card *card)
{
	return !card->health.is_bad && !card->is_cordoned && !card->is_cordoned_by_settings;
}

int health_check_accepts(const struct card *card, struct error *err)
{
	char reason[HEALTH_REASON_MAX];
	if (card->is_cordoned || card->is_cordoned_by_settings)
		return error_set(err, EBUSY,
				 "GPU %u is cordoned and takes no new tenants: name another GPU, or "
				 "first end the cordon (allot uncordon %u, or allotd's setting "
				 "'cordon')",
				 card->index, card->index);
	if (!card->health.is_bad)
		return 0;
	health_reason(&card->health, reason);
	return error_set(err, EIO,
			 "GPU %u is not healthy (%s) and takes no new tenants: name another GPU",
			 card->index, reason);
}

void health_clear_fault_by_hand(struct card *card)
{
	struct health_time now = time_now();
	if (health_clear_fault(&card->health, &now))
		log_warning("GPU %u (%s) is healthy again: uncordoning it cleared its fault",
			    card->index, card->info.uuid_text);
}

int health_subscribe(struct node *node, health_handler handler, void *data, struct error *err)
{
	if (node->health_listener_count == NODE_HEALTH_LISTENERS)
		return error_set(err, ENOSPC,
				 "a table of allotd is full (listeners for the health of GPUs); "
				 "this is a fault of allotd: please report it");
	node->health_listener[node->health_listener_count++] =
		(struct health_listener){ .handler = handler, .data = data };
	return 0;
}

void health_unsubscribe(struct node *node, health_handler handler, void *data)
{
	for (unsigned i = 0; i < node->health_listener_count; i++)
		if (node->health_listener[i].handler == handler &&
		    node->health_listener[i].data == data)
			node->health_listener[i] =
				node->health_listener[--node->health_listener_count];
}

static void free_parts(struct health_watch *w)
{
	loop_remove(w->source);
	loop_remove(w->timer);
	close_fd(&w->ready_fd);
	free(w);
}

static int prepare(struct health_watch *w, struct error *err)
{
	int r = health_parse_ignored(w->node->config.health_ignore_xids, &w->ignored, err);
	if (r < 0)
		return error_add(err, r, "health_ignore_xids");
	w->ready_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = w->ready_fd < 0 ? -errno
			    : loop_add(w->node->loop, w->ready_fd, EPOLLIN, ready, w, &w->source);
	if (r >= 0)
		r = loop_add_timer(w->node->loop, look_for_silence, w, &w->timer);
	if (r < 0)
		return error_set_errno(err, -r, "can't start to watch the health of GPUs");
	loop_arm(w->timer, SILENT_NS, SILENT_NS / 4);
	return 0;
}

int health_start(struct node *node, struct health_watch **ret, struct error *err)
{
	if (!node->config.watches_health)
		return 0;
	struct health_watch *w = calloc(1, sizeof(*w));
	if (!w)
		return error_set_errno(err, ENOMEM, "can't start to watch the health of GPUs");
	w->node = node;
	w->ready_fd = -1;
	int r = prepare(w, err);
	/* The first wait_fault() starts the driver's reports. It comes before the thread runs, so that no fault is missed. */
	if (r >= 0)
		w->fault_count = node->backend->wait_fault &&
				 node->backend->wait_fault(node->gpu, 0, w->fault, NULL) > 0;
	if (r >= 0)
		r = worker_start(&w->worker, "health", run, w, err);
	if (r < 0) {
		free_parts(w);
		return r;
	}
	*ret = w;
	return 0;
}

struct health_watch *health_stop(struct health_watch *w)
{
	if (!w)
		return NULL;
	worker_stop(&w->worker);
	free_parts(w);
	return NULL;
}
