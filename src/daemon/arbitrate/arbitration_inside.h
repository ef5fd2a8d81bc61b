/*
 * Shared by the files of an arbitration (arbitration.h):
 *
 *   arbitration.c          the thread: observes, lets the arbiter decide, publishes, sleeps
 *   arbitration_figures.c  figures of the lessees, and how much they are lent
 *   arbitration_spans.c    records which tenant had the card when
 *   arbitration_turns.c    turns of a tenant's processes
 *   lessee.c               adds and removes lessees and their processes, changes shares
 *
 * The worker's lock guards everything except `changed`, which any thread may increment.
 */
#pragma once

#include "abi/shm/region.h"
#include "base/clock.h"
#include "daemon/arbitrate/doorbell.h"
#include "daemon/arbitrate/lease_spans.h"
#include "daemon/arbitrate/observe.h"
#include "daemon/arbitrate/step_window.h"
#include "daemon/arbitrate/window.h"
#include "daemon/util/worker.h"
#include "policy/lease/arbiter.h"
#include "policy/lease/rules/lend.h"

struct gangs;

struct lessee {
	/* These fields of waiting lessees are read in each step, so they share one cache line. */
	_Alignas(64) struct lessee *next;
	int index; /* the lessee's number in the arbiter */
	enum lease_state published;
	enum region_sync_point wants_sync_point; /* as last published to the tenant */
	uint64_t seen_ns;                        /* time at which `seen` was observed */
	struct arbiter_observation seen;

	struct arbitration *owner;
	struct region_control *control;
	struct region_report *report;
	unsigned device;
	struct observer observer;
	bool paused;
	struct doorbell doorbell;
	/* `seen` showed work in flight while the lease is closing or stopped: the doorbell must ring when that work ends */
	bool is_ending;
	struct lend_tenant elastic;
	uint64_t lends, reclaims;
	struct window window_1s, window_60s;
	/* time for which the lessee worked or waited to work, up to the latest tick; and its last minute */
	uint64_t wanted_ns, waited_at_tick_ns;
	struct window wanted_60s;
	struct step_window steps;
	/* the lessee's use of the card as NVML measured it (gpu/sensor.h); `use` is valid only if has_use */
	bool has_use;
	double use;
	uint64_t use_busy_ns; /* observer.busy_ns when `use` was last set */
	/* state and latest result of arbitration_is_unlisted() */
	unsigned unlisted;
	bool is_unlisted;
	/* how much of the lessee's charged time was already added to the card's sum */
	uint64_t charged_counted_ns;
	uint64_t charged_at_tick_ns; /* the lessee's charged time at the last tick */
	bool is_quiet;               /* the last tick found no charge and published only zeros */
	uint64_t tick_ns;            /* time of the latest tick */
	int gang;                    /* the lessee's number on the board of gangs; negative: none */
	struct gang_command gang_command;
	uint32_t turn;     /* the turn as last published (region.h) */
	bool shares_space; /* in a space group, so launches may have to pay tokens */
	char tenant[REGION_NAME_MAX];
};

struct arbitration {
	struct worker worker;
	/* Incremented by doorbell_wake() on any change, and to stop the thread. Any thread may do so without the lock. */
	_Atomic uint32_t changed;
	bool can_wait_on_doorbells; /* the kernel can wait on several doorbells */
	struct doorbell_list doorbells;
	/* board of gangs, shared with the other cards' arbitrations; may be NULL */
	struct gangs *gangs;
	unsigned card;
	unsigned gang_count; /* number of lessees with a gang number */
	uint64_t to_wake;    /* bit mask of cards whose threads must be woken */
	struct arbiter *arbiter;
	struct arbiter_config config;
	bool is_paced;
	bool has_turns;
	int had_lease; /* number, in the arbiter, of the last lease holder */
	struct lessee *lessees;
	unsigned lessee_count, process_count;
	unsigned space_count;    /* number of lessees that share by space */
	bool is_missing_logged;  /* the first lessee with is_unlisted was logged */
	uint64_t unlisted_count; /* how often a lessee's is_unlisted became true */
	uint64_t stepped_ns, observed_ns;
	bool is_still;      /* no doorbell has rung since the last step */
	bool needs_polling; /* some lessee may change without ringing, so must be polled */
	uint64_t next_tick_ns;
	/* no lessee has work or demand: ticks and polls are rare until a doorbell rings */
	bool is_sleeping;
	/* when on_memory was last called because a process reported memory that no census has seen */
	uint64_t new_memory_reported_ns;
	bool has_memory_request;
	uint64_t request_reported_ns;
	void (*on_memory)(void *data);
	void *on_memory_data;
	uint64_t charged_ns;
	struct lend_config elastic;
	uint64_t limits_decided_ns; /* when lend_decide() last decided how much is lent */
	struct window window_1s;
	struct lease_spans *spans;
	int span_watchers;
};

/*
 * Returns true if NVML's lists of processes (gpu/sensor.h) lack the lessee. Call for each list: `has_worked` says whether the
 * lessee worked since the last list, `is_named` whether this list has it. *unlisted counts the lists that lack the lessee
 * though it worked, since a list last had it. A few such lists are normal for new processes, small shares or a busy machine, so
 * returns false while *unlisted is below ARBITRATION_UNLISTED.
 */
bool arbitration_is_unlisted(unsigned *unlisted, bool has_worked, bool is_named);
void arbitration_count_charge(struct arbitration *a, struct lessee *l, uint64_t charged_ns);
/* Publishes how much work the lessee may have in flight. */
void arbitration_publish_depth(const struct arbitration *a, struct lessee *l);
/*
 * Decides and publishes which process of each lessee has its turn. Call before publishing lease states. Returns the deadline
 * of the next step.
 */
uint64_t arbitration_publish_turns(struct arbitration *a, uint64_t now_ns);
/*
 * Publishes how long the lessee must have no work in its lease before it rings its doorbell. The time is learned from the gaps
 * in its work within leases and turns.
 */
void arbitration_publish_patience(struct lessee *l);
/* Records which tenant has the card now. a->spans must not be NULL. */
void arbitration_note_span(struct arbitration *a, uint64_t now_ns);
/*
 * Returns true if the thread can sleep until a doorbell rings: no lessee has work, demand or state that changes with time, and
 * every lessee can be trusted to ring. Heartbeats then come every ARBITRATION_SLEEP_NS.
 */
bool arbitration_may_sleep(const struct arbitration *a);
/*
 * Updates the averages of charged GPU time (window.h), the utilization that NVML's functions report inside tenants, heartbeats
 * and lent limits. Sets the time of the next tick.
 */
void arbitration_tick(struct arbitration *a, uint64_t now_ns);
