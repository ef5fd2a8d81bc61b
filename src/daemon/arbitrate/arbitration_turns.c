#include "daemon/arbitrate/arbitration_inside.h"

#include "base/log.h"
#include "daemon/arbitrate/region_host.h"

static enum turns_lease_state lease_state(const struct arbitration *a, const struct lessee *l)
{
	enum lease_state state = arbiter_state(a->arbiter, l->index);

	/* All processes of a tenant with turns coordinated across GPUs may run: one may wait for another on another GPU. */
	if (!a->has_turns || l->gang_command.order != GANG_NONE)
		return TURNS_OPEN;
	if (state == LEASE_STOP || state == LEASE_CLOSING)
		return TURNS_AWAY;
	/*
	 * Processes take turns only while their tenant holds the lease. LEASE_GO does not prove this: while no tenant holds the
	 * lease, an idle capped tenant has LEASE_GO too, so that its first launch need not wait.
	 */
	return l->index == arbiter_holder(a->arbiter) && state == LEASE_GO ? TURNS_HELD : TURNS_OPEN;
}

static struct turns_lease lease_of(const struct arbitration *a, const struct lessee *l,
				   uint64_t now_ns)
{
	return (struct turns_lease){ .state = lease_state(a, l),
				     .number = arbiter_leases(a->arbiter, l->index),
				     .is_again = a->had_lease == l->index,
				     .now_ns = now_ns,
				     .quantum_ns = arbiter_quantum_ns(a->arbiter),
				     .handover_ns = (double)arbiter_handover_ns(a->arbiter),
				     .config = &a->config };
}

void arbitration_publish_patience(struct lessee *l)
{
	_Atomic uint64_t *idle_ns = &l->control->device[l->device].idle_ns;
	uint64_t patience_ns = arbiter_patience_ns(l->owner->arbiter, l->index);
	uint64_t turn_ns = turns_patience_ns(&l->observer.turns, l->observer.turn,
					     l->observer.count);

	patience_ns = turn_ns < patience_ns ? turn_ns : patience_ns;
	if (atomic_load_explicit(idle_ns, memory_order_relaxed) != patience_ns)
		atomic_store_explicit(idle_ns, patience_ns, memory_order_relaxed);
}

static void log_given_up(const struct lessee *l)
{
	static const char *const reasons[] = {
		[TURNS_LATE] = "work that does not end",
		[TURNS_STUCK] = "a gate that gave up",
		[TURNS_IDLE] = "idle times of the process that has the turn"
	};
	const struct turns *t = &l->observer.turns;

	log_debug("tenant '%s': its processes take no turns among themselves for %.1f s, because of %s",
		  l->tenant, (double)t->off_ns / (double)NSEC_PER_SEC, reasons[t->reason]);
}

static uint64_t publish_turn(struct arbitration *a, struct lessee *l, uint64_t now_ns)
{
	struct observer *o = &l->observer;
	uint64_t next_ns, given_up = o->turns.given_up;

	if (o->count < 2 && !l->turn)
		return UINT64_MAX;
	struct turns_lease lease = lease_of(a, l, now_ns);
	/* Without the lease, decide only while the last lease's time is not counted (was_in_use), or its work drains. */
	if (lease.state == TURNS_AWAY && !o->turns.was_in_use &&
	    !arbiter_is_draining(a->arbiter, l->index))
		return UINT64_MAX;
	next_ns = turns_step(&o->turns, o->turn, o->count, &lease);
	if (o->turns.given_up != given_up)
		log_given_up(l);
	if (o->turns.turn == l->turn)
		return next_ns;
	l->turn = o->turns.turn;
	if (lease.state == TURNS_HELD)
		arbitration_publish_patience(l);
	region_set_turn(l->control, l->device, l->turn,
			l->published == LEASE_GO && lease.state != TURNS_AWAY);
	return next_ns;
}

uint64_t arbitration_publish_turns(struct arbitration *a, uint64_t now_ns)
{
	uint64_t next_ns = UINT64_MAX;

	if (a->is_paced)
		return next_ns;
	for (struct lessee *l = a->lessees; l; l = l->next) {
		uint64_t own_ns = publish_turn(a, l, now_ns);
		next_ns = own_ns < next_ns ? own_ns : next_ns;
	}
	if (arbiter_holder(a->arbiter) >= 0)
		a->had_lease = arbiter_holder(a->arbiter);
	return next_ns;
}
