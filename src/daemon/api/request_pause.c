/* Handles the requests pause and resume, for tenants and for containers. */
#include <errno.h>
#include <inttypes.h>

#include "daemon/api/request_handlers.h"
#include "daemon/api/session.h"
#include "daemon/memory/swap/swap_orders.h"
#include "daemon/memory/swap/tenant_checkpoint.h"
#include "daemon/state/tenant_state.h"
#include "daemon/tasks/violation/violations.h"
#include "daemon/tasks/watch/gpu_watch.h"

#define MIB (UINT64_C(1) << 20)

struct pausing {
	bool paused, swap_out;
	/* the request only asks for the progress of an earlier request with the same swap_out */
	bool is_poll;
};

static int read_pausing(const json_t *request, bool paused, struct pausing *ret, struct error *err)
{
	struct pausing p = { .paused = paused };
	int r = json_read_bool(request, "poll", &p.is_poll, err);
	if (r >= 0 && paused)
		r = json_read_bool(request, "swap_out", &p.swap_out, err);
	if (r >= 0)
		*ret = p;
	return r;
}

static void add_progress(json_t *reply, bool is_moving, const struct swap_progress *p)
{
	json_object_set_new(reply, "moving", json_boolean(is_moving));
	json_object_set_new(reply, "moved_bytes", json_integer((json_int_t)p->moved_bytes));
	json_object_set_new(reply, "total_bytes", json_integer((json_int_t)p->total_bytes));
	json_object_set_new(reply, "stays_bytes", json_integer((json_int_t)p->stays_bytes));
}

static int check_still_wanted(const struct tenant *tenant, bool swap_out, struct error *err)
{
	if (tenant->terms.swapped_out == swap_out)
		return 0;
	return error_set(
		err, ECANCELED, "tenant '%s': %s", tenant->terms.name,
		swap_out
			? "swapping out was cancelled: the tenant was resumed, or paused again without --swap-out"
			: "its return to the GPU was cancelled: the tenant was paused again with --swap-out");
}

static int move_by_checkpoint(struct tenant *tenant, const struct pausing *p, json_t *reply,
			      struct error *err)
{
	int r = 0;
	if (!p->is_poll)
		r = p->swap_out ? tenant_checkpoint_leave(tenant, err)
				: tenant_checkpoint_return(tenant, p->paused, err);
	if (r >= 0)
		r = tenant_checkpoint_outcome(tenant, err);
	bool is_moving = r > 0;
	if (r >= 0)
		r = check_still_wanted(tenant, p->swap_out, err);
	if (r < 0)
		return r;
	struct swap_progress progress = tenant_checkpoint_progress(tenant);
	add_progress(reply, is_moving, &progress);
	return 0;
}

/* Adds the swap-out's progress to the reply. Returns -errno if the swap-out was cancelled or the memory cannot leave. */
static int add_leaving_progress(struct tenant *tenant, json_t *reply, struct error *err)
{
	struct swap_progress p = swap_progress(tenant);
	uint64_t ready_bytes = atomic_load(&tenant->region.control->arena_ready_bytes);
	int r = check_still_wanted(tenant, true, err);
	if (r < 0)
		return r;
	add_progress(reply, swap_place(tenant) == PLACE_LEAVING, &p);
	if (!swap_has_refused(tenant))
		return 0;
	if (tenant->arena && ready_bytes < p.total_bytes)
		return error_set(err, ENOSPC,
				 "tenant '%s' is paused, but its memory stays on its GPUs: moving this "
				 "memory needs %" PRIu64
				 " MiB of host memory, and the tenant's arena has %" PRIu64
				 " MiB: run the tenant with a larger --swap-arena, or free host "
				 "memory and pause the tenant again",
				 tenant->terms.name, p.total_bytes / MIB, ready_bytes / MIB);
	return error_set(err, EBUSY,
			 "tenant '%s' is paused, but its memory stays on its GPUs: "
			 "GPU work or a graph capture does not end, or copying failed: "
			 "pause or resume the tenant again",
			 tenant->terms.name);
}

static int pause_container(struct node *node, const char *name, const struct pausing *p,
			   json_t *reply, struct error *err)
{
	bool moving = false;
	int r = gpu_watch_set_paused(node->watch, name, p->paused, p->swap_out, p->is_poll, &moving,
				     err);
	if (r >= 0 && moving)
		json_object_set_new(reply, "moving", json_true());
	return r;
}

static int set_paused(struct session *session, const json_t *request, bool paused, json_t *reply,
		      struct error *err)
{
	struct tenant *tenant;
	struct pausing p = { 0 };
	const char *name = NULL;
	int r = json_read_string(request, "name", &name, err);
	if (r >= 0)
		r = read_pausing(request, paused, &p, err) < 0 ? -EINVAL : r;
	/* A process that bypassed the library may have outlived its tenant and still be frozen. Let it go on. */
	int resumed = 0;
	if (r > 0 && !paused && !p.is_poll && !node_find_tenant(session->node, name) &&
	    session->is_admin)
		resumed = violations_resume(session->node->violations, name, true, err);
	if (resumed)
		return resumed < 0 ? resumed : 0;
	/* The name may be a container's, which has no owner here, so only an administrator may pause it. */
	if (r > 0 && !node_find_tenant(session->node, name) && session->is_admin)
		return pause_container(session->node, name, &p, reply, err);
	if (r >= 0)
		r = session_find_own(session, request, "name", &tenant, err);
	if (r >= 0 && !paused && !p.is_poll)
		r = violations_resume(session->node->violations, tenant->terms.name,
				      session->is_admin || session->node->is_private, err);
	if (r < 0)
		return r;
	json_object_set_new(reply, "id", json_string(tenant->terms.id));
	bool swap_out = p.swap_out;
	bool was_paused = tenant->terms.paused, was_out = tenant->terms.swapped_out;
	if (swap_way_of(&tenant->terms) == SWAP_BY_CHECKPOINT &&
	    (swap_out || tenant_is_checkpointing(tenant) || p.is_poll))
		return move_by_checkpoint(tenant, &p, reply, err);
	if (!p.is_poll && (was_paused != paused || was_out != swap_out)) {
		tenant_set_paused(tenant, paused, swap_out);
		r = tenant_state_save(tenant, true, err);
		if (r < 0)
			tenant_set_paused(tenant, was_paused, was_out);
	} else if (!p.is_poll && swap_out && swap_has_refused(tenant)) {
		swap_repeat_order(tenant);
	}
	return r >= 0 && swap_out ? add_leaving_progress(tenant, reply, err) : r;
}

int request_pause(struct session *session, const json_t *request, json_t *reply, struct error *err)
{
	return set_paused(session, request, true, reply, err);
}

int request_resume(struct session *session, const json_t *request, json_t *reply, struct error *err)
{
	return set_paused(session, request, false, reply, err);
}
