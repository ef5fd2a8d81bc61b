#include "daemon/memory/swap/tenant_checkpoint.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/gpu/census.h"
#include "daemon/memory/swap/swap_orders.h"
#include "daemon/space/space_groups.h"
#include "daemon/state/card_promises.h"
#include "daemon/state/node/subsystem.h"
#include "daemon/state/tenant_state.h"

#define MIB (UINT64_C(1) << 20)
#define PARK_POLL_NS (2 * NSEC_PER_MSEC)
/* How long the tenant's libraries have to park (stop calling the driver). A stopped process or old library never answers. */
#define PARK_NS (200 * NSEC_PER_MSEC)

struct tenant_checkpoint {
	struct loop_source *timer; /* runs while libraries are asked to park */
	bool is_parking;
	uint64_t park_until_ns;
	/* The tenant was paused before the request to leave. Restored if leaving fails. */
	bool was_paused;
	struct error failure; /* of the last request; code 0: it did not fail */
};

static void place_changed(void *data, struct checkpoint *checkpoint);
static void poll_parking(void *data, uint32_t events);

enum checkpoint_place tenant_checkpoint_place(const struct tenant *t)
{
	if (!t->checkpoint)
		return PLACE_IN;
	return t->checkpoint_request->is_parking ? PLACE_LEAVING : checkpoint_place(t->checkpoint);
}

bool tenant_is_checkpointing(const struct tenant *t)
{
	return tenant_checkpoint_place(t) != PLACE_IN;
}

static int ensure_checkpoint(struct tenant *t, struct error *err)
{
	struct checkpoint *checkpoint = NULL;
	cleanup_free struct tenant_checkpoint *c = NULL;
	if (t->checkpoint)
		return 0;
	c = calloc(1, sizeof(*c));
	if (!c)
		return error_set_errno(err, ENOMEM, "checkpoint");
	int r = checkpoint_new(t->node, t->terms.id, place_changed, t, &checkpoint, err);
	if (r >= 0 && loop_add_timer(t->node->loop, poll_parking, t, &c->timer) < 0) {
		checkpoint_free(checkpoint);
		r = error_set_errno(err, ENOMEM, "checkpoint: timer");
	}
	if (r >= 0) {
		t->checkpoint = checkpoint;
		t->checkpoint_request = steal_pointer(&c);
	}
	return r;
}

void tenant_checkpoint_forget(struct tenant *t)
{
	if (!t->checkpoint)
		return;
	checkpoint_free(t->checkpoint);
	t->checkpoint = NULL;
	loop_remove(t->checkpoint_request->timer);
	free(t->checkpoint_request);
	t->checkpoint_request = NULL;
}

/* Includes processes that have not found this daemon after a restart. */
static void fill_order(struct tenant *t, struct helper_order *order)
{
	for (unsigned i = 0; i < t->slot_limit; i++)
		if (t->process[i] && order->process_count < HELPER_MAX_PROCESSES)
			order->process[order->process_count++] = (struct helper_process){
				.pid = t->process[i]->pid, .start_time = t->process[i]->start_time
			};
	for (const struct old_process *o = t->old; o; o = o->next)
		if (!o->registered && order->process_count < HELPER_MAX_PROCESSES)
			order->process[order->process_count++] = (struct helper_process){
				.pid = o->pid, .start_time = o->start_time
			};
	for (unsigned i = 0; i < t->terms.device_count; i++)
		order->bytes[t->terms.device[i].card->index] = tenant_usage(t, i).used_bytes;
}

static int send_order(struct tenant *t, enum checkpoint_goal goal, struct error *err)
{
	cleanup_free struct helper_order *order = calloc(1, sizeof(*order));
	if (!order)
		return error_set_errno(err, ENOMEM, "checkpoint");
	order->goal = goal;
	fill_order(t, order);
	return checkpoint_order(t->checkpoint, order, err);
}

/* The tenant's move changes how much can be promised to other tenants. */
static void publish_place(struct tenant *t)
{
	for (unsigned i = 0; i < t->terms.device_count; i++)
		tenant_publish_quota(t, i);
	notify_tenants_changed(t->node);
	census_request(t->node->census);
}

/* `is_away`: some memory is off the GPU, so the tenant gets no lease even if it is not paused. */
static void set_terms(struct tenant *t, bool is_away, bool paused, bool swapped_out)
{
	t->is_away = is_away;
	tenant_set_paused(t, paused, swapped_out);
	tenant_state_save_or_retry(
		t, true, "a restarted daemon may not know whether its memory is on its GPU");
}

/* Call when all of the tenant's memory is on the GPU again. */
static void resume_on_card(struct tenant *t, bool paused)
{
	swap_set_order(t, SWAP_ORDER_IN);
	publish_place(t);
	set_terms(t, false, paused, false);
}

static void log_failure(struct tenant *t, const char *what, const char *text)
{
	log_warning_of(tenant_log_key(&t->terms), "tenant '%s': %s: %s", t->terms.name, what, text);
	error_set(&t->checkpoint_request->failure, EIO, "%s", text);
}

static void place_changed(void *data, struct checkpoint *checkpoint)
{
	struct tenant *t = data;
	const char *error = checkpoint_error(checkpoint);
	switch (checkpoint_place(checkpoint)) {
	case PLACE_IN:
		if (*error)
			log_failure(t, "its memory stays on its GPU", error);
		resume_on_card(t, t->terms.swapped_out ? t->checkpoint_request->was_paused
						       : t->terms.paused);
		break;
	case PLACE_OUT:
		if (*error)
			log_failure(t, "its memory stays off its GPU", error);
		else
			log_info_of(tenant_log_key(&t->terms),
				    "tenant '%s': %" PRIu64
				    " MiB were moved off its GPU to host memory, in %.1f s",
				    t->terms.name, checkpoint_bytes(checkpoint) / MIB,
				    (double)checkpoint_moved_ns(checkpoint) / (double)NSEC_PER_SEC);
		set_terms(t, true, true, true);
		publish_place(t);
		break;
	default:
		log_failure(t, "its memory is partly off its GPU (resume it to try again)", error);
		publish_place(t);
		break;
	}
}

static bool has_parked(struct tenant *t)
{
	uint32_t word = atomic_load(&t->region.control->swap);
	for (unsigned i = 0; i < t->slot_limit; i++)
		if (t->process[i] && atomic_load(&t->region.report->slot[i].swap_word) != word)
			return false;
	return true;
}

static void poll_parking(void *data, uint32_t events)
{
	struct tenant *t = data;
	struct tenant_checkpoint *c = t->checkpoint_request;
	struct error err = { 0 };
	if (!c->is_parking)
		return;
	if (!has_parked(t) && clock_now_ns() < c->park_until_ns) {
		loop_arm(c->timer, PARK_POLL_NS, 0);
		return;
	}
	c->is_parking = false;
	if (send_order(t, CHECKPOINT_OUT, &err) >= 0)
		return;
	log_failure(t, "its memory stays on its GPU", err.text);
	resume_on_card(t, c->was_paused);
}

static int begin_to_leave(struct tenant *t, struct error *err)
{
	int r = ensure_checkpoint(t, err);
	if (r < 0)
		return r;
	t->checkpoint_request->failure = (struct error){ 0 };
	t->checkpoint_request->is_parking = true;
	t->checkpoint_request->park_until_ns = clock_now_ns() + PARK_NS;
	swap_set_order(t, SWAP_ORDER_PARKED);
	loop_arm(t->checkpoint_request->timer, PARK_POLL_NS, 0);
	return 0;
}

static bool is_moving(const struct tenant *t)
{
	enum checkpoint_place place = tenant_checkpoint_place(t);
	return place == PLACE_LEAVING || place == PLACE_RETURNING;
}

static int check_still(const struct tenant *t, struct error *err)
{
	return is_moving(t)
		       ? error_set(err, EBUSY,
				   "tenant '%s': its GPU memory is being moved already (%s): "
				   "wait, then try again",
				   t->terms.name, checkpoint_place_name(tenant_checkpoint_place(t)))
		       : 0;
}

int tenant_checkpoint_leave(struct tenant *t, struct error *err)
{
	bool was_paused = t->terms.paused;
	if (tenant_is_off_card(t))
		return 0;
	if (space_is_client(t))
		return error_set(
			err, EOPNOTSUPP,
			"tenant '%s' shares by space: memory of MPS clients can't be moved off "
			"the GPU; pause it without --swap-out",
			t->terms.name);
	int r = check_still(t, err);
	if (r < 0)
		return r;
	if (!t->process_count)
		return error_set(err, ESRCH,
				 "tenant '%s' has no process with GPU memory to move; pause it "
				 "without --swap-out",
				 t->terms.name);
	r = swap_check_host_memory(t->node, tenant_used_bytes(t), err);
	if (r >= 0)
		r = begin_to_leave(t, err);
	if (r < 0)
		return r;
	t->checkpoint_request->was_paused = was_paused;
	set_terms(t, true, true, true);
	return 0;
}

void tenant_checkpoint_adopted(struct tenant *t)
{
	struct error err = { 0 };
	if (!t->terms.swapped_out || swap_way_of(&t->terms) != SWAP_BY_CHECKPOINT ||
	    (t->checkpoint && checkpoint_place(t->checkpoint) != PLACE_IN))
		return;
	if (begin_to_leave(t, &err) < 0)
		log_error("tenant '%s': its memory was off its GPU when the previous daemon ended, "
			  "but can't be moved off again: %s; resume the tenant, then pause it with "
			  "--swap-out",
			  t->terms.name, err.text);
	else
		t->checkpoint_request->was_paused = t->is_away = true;
}

static int check_room(struct tenant *t, struct error *err)
{
	for (unsigned i = 0; i < t->terms.device_count; i++) {
		struct card *card = t->terms.device[i].card;
		struct promise_card p = node_promised(t->node, card, t);
		uint64_t wanted = tenant_counted_bytes(t, i), most = card->info.memory_bytes;
		uint64_t taken = node_taken_bytes(card, &p) + p.kept_bytes;
		uint64_t left = taken < most ? most - taken : 0;
		if (wanted > left)
			return error_set(
				err, ENOSPC,
				"tenant '%s' stays in host memory: it needs %" PRIu64
				" MiB of GPU %u to come back, and of %" PRIu64 " MiB, %" PRIu64
				" are promised to others or in use; free GPU memory, then resume "
				"the tenant again",
				t->terms.name, wanted / MIB, card->index, most / MIB, taken / MIB);
	}
	return 0;
}

int tenant_checkpoint_return(struct tenant *t, bool paused, struct error *err)
{
	int r = check_still(t, err);
	if (r >= 0)
		r = check_room(t, err);
	if (r >= 0)
		r = send_order(t, CHECKPOINT_IN, err);
	if (r < 0)
		return r;
	t->checkpoint_request->failure = (struct error){ 0 };
	/* From here on, the promise counts on the GPU again, so that the memory is promised to no other tenant. */
	publish_place(t);
	set_terms(t, true, paused, false);
	return 0;
}

int tenant_checkpoint_outcome(struct tenant *t, struct error *err)
{
	struct tenant_checkpoint *c = t->checkpoint_request;
	if (!c)
		return 0;
	if (is_moving(t))
		return 1;
	return c->failure.code ? error_set(err, c->failure.code, "%s", c->failure.text) : 0;
}

struct swap_progress tenant_checkpoint_progress(struct tenant *t)
{
	struct swap_progress p = { .total_bytes = tenant_used_bytes(t) };
	if (tenant_is_off_card(t))
		p.moved_bytes = p.total_bytes = checkpoint_bytes(t->checkpoint);
	return p;
}

json_t *tenant_checkpoint_to_json(struct tenant *t)
{
	const struct tenant_checkpoint *c = t->checkpoint_request;
	if (!c || (!tenant_is_checkpointing(t) && !checkpoint_failed(t->checkpoint)))
		return json_null();
	const char *error = checkpoint_error(t->checkpoint);
	return json_pack("{s:s, s:s, s:I, s:I, s:f, s:o}", "kind", "checkpoint", "state",
			 checkpoint_place_name(tenant_checkpoint_place(t)), "swapped_bytes",
			 (json_int_t)(tenant_is_off_card(t) ? checkpoint_bytes(t->checkpoint) : 0),
			 "failed", (json_int_t)checkpoint_failed(t->checkpoint), "moved_s",
			 (double)checkpoint_moved_ns(t->checkpoint) / (double)NSEC_PER_SEC, "error",
			 *error ? json_string(error) : json_null());
}
