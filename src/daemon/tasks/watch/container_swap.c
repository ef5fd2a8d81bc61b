#include "daemon/tasks/watch/container_swap.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/gpu/census.h"
#include "daemon/memory/checkpoint/checkpoint.h"
#include "daemon/memory/swap/swap_orders.h"
#include "daemon/state/card_promises.h"
#include "daemon/state/node/drain.h"
#include "daemon/state/node/node.h"
#include "daemon/state/node/subsystem.h"
#include "daemon/tasks/watch/gpu_watch_inside.h"

#define MIB (UINT64_C(1) << 20)

struct container_swap {
	struct gpu_watch *watch;
	struct gpu_container *container;
	struct checkpoint *checkpoint;
	/* the last order to the checkpoint helper, with the container's memory on each card */
	struct helper_order order;
	/* the memory in `order` is reserved for the container's return */
	bool is_reserved;
	bool is_out_wanted; /* the last accepted request was to leave the GPUs */
	uint64_t back_ns;   /* when the last move ended */
	int failed;         /* errno of the last request; 0: it did not fail */
};

static enum checkpoint_place place_of(const struct gpu_container *c)
{
	return c->swap ? checkpoint_place(c->swap->checkpoint) : PLACE_IN;
}

bool container_swap_is_away(const struct gpu_container *c)
{
	return place_of(c) != PLACE_IN;
}

const char *container_swap_state(const struct gpu_container *c)
{
	enum checkpoint_place place = place_of(c);
	if (place == PLACE_IN)
		return NULL;
	return place == PLACE_OUT ? "swapped" : checkpoint_place_name(place);
}

static void reserve(struct container_swap *s, bool reserved)
{
	struct node *node = s->watch->node;
	if (s->is_reserved == reserved)
		return;
	s->is_reserved = reserved;
	for (unsigned i = 0; i < node->card_count; i++)
		node->card[i].returning_bytes += reserved ? s->order.bytes[i] : -s->order.bytes[i];
	notify_tenants_changed(node);
}

static const char *memory_place(enum checkpoint_place place)
{
	return place == PLACE_IN    ? "on its GPUs"
	       : place == PLACE_OUT ? "in host memory"
				    : "partly moved";
}

static void changed(void *data, struct checkpoint *checkpoint)
{
	struct container_swap *s = data;
	const char *error = checkpoint_error(checkpoint), *id = s->container->what.id;
	enum checkpoint_place place = checkpoint_place(checkpoint);
	if (*error) {
		log_warning("container %.*s: its GPU memory stays %s: %s", CONTAINER_SHORT_ID, id,
			    memory_place(place), error);
		s->failed = EIO;
	} else {
		log_info("container %.*s: its GPU memory, %" PRIu64 " MiB, is %s now, after %.1f s",
			 CONTAINER_SHORT_ID, id, checkpoint_bytes(checkpoint) / MIB,
			 memory_place(place),
			 (double)checkpoint_moved_ns(checkpoint) / (double)NSEC_PER_SEC);
	}
	if (place == PLACE_OUT)
		reserve(s, false);
	s->back_ns = clock_now_ns();
	census_request(s->watch->node->census);
}

static int need(struct gpu_watch *w, struct gpu_container *c, struct error *err)
{
	cleanup_free struct container_swap *s = NULL;
	if (c->swap)
		return 0;
	s = calloc(1, sizeof(*s));
	if (!s)
		return error_set_errno(err, ENOMEM, "checkpoint");
	s->watch = w;
	s->container = c;
	int r = checkpoint_new(w->node, c->what.id, changed, s, &s->checkpoint, err);
	if (r >= 0)
		c->swap = steal_pointer(&s);
	return r;
}

static void fill(struct container_swap *s)
{
	struct gpu_watch *w = s->watch;
	const struct gpu_task *t;
	s->order = (struct helper_order){ .goal = CHECKPOINT_OUT };
	TAILQ_FOREACH(t, &w->tasks->live, link)
		if (t->container == s->container && s->order.process_count < HELPER_MAX_PROCESSES)
			s->order.process[s->order.process_count++] = (struct helper_process){
				.pid = t->pid, .start_time = t->start_time
			};
	for (unsigned i = 0; i < w->tasks->card_count; i++)
		s->order.bytes[i] = s->container->card[i].held_bytes;
}

static int leave(struct gpu_watch *w, struct gpu_container *c, struct error *err)
{
	if (c->has_library)
		return error_set(
			err, EOPNOTSUPP,
			"container %.*s uses allot's library: pause its tenant instead, by the "
			"tenant's name",
			CONTAINER_SHORT_ID, c->what.id);
	if (c->is_frozen)
		return error_set(
			err, EBUSY,
			"container %.*s is frozen, so its work on the GPU can't end: resume it "
			"first",
			CONTAINER_SHORT_ID, c->what.id);
	if (place_of(c) == PLACE_OUT)
		return 0;
	int r = need(w, c, err);
	if (r < 0)
		return r;
	if (place_of(c) == PLACE_IN) {
		reserve(c->swap, false);
		fill(c->swap);
	}
	uint64_t bytes = 0;
	for (unsigned i = 0; i < w->tasks->card_count; i++)
		bytes += c->swap->order.bytes[i];
	r = swap_check_host_memory(w->node, bytes, err);
	if (r < 0)
		return r;
	c->swap->order.goal = CHECKPOINT_OUT;
	return checkpoint_order(c->swap->checkpoint, &c->swap->order, err);
}

static int check_room(struct container_swap *s, struct error *err)
{
	struct node *node = s->watch->node;
	for (unsigned i = 0; i < node->card_count; i++) {
		struct card *card = &node->card[i];
		struct promise_card p = node_promised(node, card, NULL);
		uint64_t taken = p.promised_bytes + p.unpromised_held_bytes + p.granted_bytes +
				 p.kept_bytes + card->foreign_bytes + drain_bytes(card);
		uint64_t most = card->info.memory_bytes;
		if (s->order.bytes[i] && s->order.bytes[i] > (taken < most ? most - taken : 0))
			return error_set(err, ENOSPC,
					 "container %.*s stays in host memory: it needs %" PRIu64
					 " MiB of GPU %u to come back, and of %" PRIu64
					 " MiB, %" PRIu64
					 " are promised to tenants or in use; free GPU memory, then "
					 "resume the container again",
					 CONTAINER_SHORT_ID, s->container->what.id,
					 s->order.bytes[i] / MIB, i, most / MIB, taken / MIB);
	}
	return 0;
}

static int come_back(struct gpu_container *c, struct error *err)
{
	struct container_swap *s = c->swap;
	int r = place_of(c) == PLACE_OUT ? check_room(s, err) : 0;
	if (r < 0)
		return r;
	s->order.goal = CHECKPOINT_IN;
	r = checkpoint_order(s->checkpoint, &s->order, err);
	if (r >= 0)
		reserve(s, true);
	return r;
}

/* For a poll, checks that the earlier request is still in force. The swap state is lost when the container's GPU work ends. */
static int check_still_wanted(const struct gpu_container *c, bool out, struct error *err)
{
	bool is_out_wanted = c->swap && c->swap->is_out_wanted;
	if (out == is_out_wanted)
		return 0;
	return error_set(
		err, ECANCELED, "container %.*s: %s", CONTAINER_SHORT_ID, c->what.id,
		out ? "swapping out was cancelled: the container was resumed, or its GPU work ended"
		    : "the resume was cancelled: the container was paused again with --swap-out");
}

int container_swap(struct gpu_watch *w, struct gpu_container *c, bool out, bool poll,
		   bool *ret_moving, struct error *err)
{
	int r = poll ? check_still_wanted(c, out, err) : out ? leave(w, c, err) : come_back(c, err);
	if (r < 0 || !c->swap)
		return r;
	if (!poll) {
		c->swap->failed = 0;
		c->swap->is_out_wanted = out;
	}
	*ret_moving = place_of(c) == PLACE_LEAVING || place_of(c) == PLACE_RETURNING;
	if (!*ret_moving && c->swap->failed)
		return error_set(err, c->swap->failed, "%s", checkpoint_error(c->swap->checkpoint));
	return 0;
}

json_t *container_swap_to_json(const struct gpu_container *c)
{
	if (!c->swap)
		return json_null();
	const struct checkpoint *k = c->swap->checkpoint;
	const char *error = checkpoint_error(k);
	return json_pack("{s:s, s:s, s:I, s:I, s:f, s:o}", "kind", "checkpoint", "state",
			 checkpoint_place_name(place_of(c)), "swapped_bytes",
			 (json_int_t)(place_of(c) == PLACE_OUT ? checkpoint_bytes(k) : 0), "failed",
			 (json_int_t)checkpoint_failed(k), "moved_s",
			 (double)checkpoint_moved_ns(k) / (double)NSEC_PER_SEC, "error",
			 *error ? json_string(error) : json_null());
}

void container_swap_read(struct gpu_watch *w, uint64_t begun_ns)
{
	struct gpu_container *c;
	TAILQ_FOREACH(c, &w->tasks->containers, link)
		if (c->swap && c->swap->is_reserved && place_of(c) == PLACE_IN &&
		    c->swap->back_ns < begun_ns)
			reserve(c->swap, false);
}

void container_swap_forget(struct gpu_watch *w, struct gpu_container *c)
{
	if (!c->swap)
		return;
	reserve(c->swap, false);
	checkpoint_free(c->swap->checkpoint);
	free(c->swap);
	c->swap = NULL;
}

void container_swap_forget_all(struct gpu_watch *w)
{
	struct gpu_container *c;
	TAILQ_FOREACH(c, &w->tasks->containers, link)
		container_swap_forget(w, c);
}
