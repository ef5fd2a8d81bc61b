/*
 * What the parts of an arbitration (arbitration.h) share:
 *
 *   arbitration.c          the thread: observes, decides by the arbiter, publishes, sleeps
 *   arbitration_figures.c  figures of its tenants, and the lending that follows from them
 *   arbitration_spans.c    which tenant had the card when
 *   arbitration_turns.c    turns of a tenant's processes
 *   lessee.c               tenants and their processes come and go, shares change
 *
 * All of it is guarded by the worker's lock, except `changed`, which any thread counts up.
 */
#pragma once

#include "abi/shm/region.h"
#include "base/clock.h"
#include "daemon/arbitrate/bell.h"
#include "daemon/arbitrate/lease_spans.h"
#include "daemon/arbitrate/observe.h"
#include "daemon/arbitrate/step_window.h"
#include "daemon/arbitrate/window.h"
#include "daemon/util/worker.h"
#include "policy/lease/arbiter.h"
#include "policy/lease/rules/elastic.h"

struct gangs;

struct lessee {
	/* What each step reads of those that only wait, in one line of the cache. */
	_Alignas(64) struct lessee *next;
	int index; /* the arbiter's */
	enum lease_state published;
	enum region_sync_point wants_sync_point; /* as published */
	uint64_t seen_ns;                        /* when: */
	struct arbiter_observation seen;

	struct arbitration *owner;
	struct region_control *control;
	struct region_report *report;
	unsigned device;
	struct observer observer;
	bool paused;
	struct bell bell;
	bool is_ending; /* at the last look: busy, and its end is waited for */
	struct elastic_tenant elastic;
	uint64_t lends, reclaims;
	struct window window_1s, window_60s;
	struct step_window steps;
	bool has_use; /* another sensor's word of the card's use: */
	double use;
	uint64_t use_busy_ns; /* its own busy time when that was told last */
	unsigned unnamed;     /* arbitration_is_missed(), and what that said last: */
	bool is_missed;
	uint64_t charged_counted_ns; /* what the card's sum has of it */
	uint64_t pulsed_ns;          /* what was charged at the last pulse */
	bool is_quiet;               /* its figures are down to zero: nothing to publish ... */
	uint64_t quiet_ns;           /* ... up to then */
	int gang;                    /* its number among those that may be gangs; or negative */
	struct gang_word gang_word;
	uint32_t turn;     /* as published */
	bool shares_space; /* in a group: its launches may have to pay */
};

struct arbitration {
	struct worker worker;     /* sleeps on `changed`: */
	_Atomic uint32_t changed; /* something did, or stop: bell_wake() */
	bool has_bells;           /* the kernel can wait for them */
	struct bell_list listened;
	struct gangs *gangs; /* shared with the other cards; or NULL */
	unsigned card;
	unsigned gang_count; /* lessees with a number there */
	uint64_t to_wake;    /* cards */
	struct arbiter *arbiter;
	struct arbiter_config config;
	bool is_paced;  /* by ARBITER_POLICY_FEEDBACK: launches pay, grants are published */
	bool has_turns; /* a tenant's processes take turns within its leases */
	int had_lease;  /* the arbiter's index of who had the last */
	struct lessee *lessees;
	unsigned lessee_count, process_count;
	unsigned space_count;  /* lessees that share space */
	bool has_told;         /* that the other sensor misses one at work ... */
	uint64_t missed_count; /* ... and how often it began to */
	uint64_t stepped_ns, observed_ns;
	bool is_still;     /* nothing was rung since */
	bool needs_looks;  /* somebody may have something to tell, but does not ring for it */
	uint64_t pulse_ns; /* when the next is due */
	bool is_sleeping; /* no lessee has work or demand: beats and looks come seldom, until one rings */
	uint64_t fresh_ns; /* when told last */
	bool has_asked;    /* not told yet, and when that was told last: */
	uint64_t asked_ns;
	void (*on_fresh)(void *data); /* arbitration_set_fresh() */
	void *fresh_data;
	uint64_t charged_ns; /* of all lessees that there ever were */
	struct elastic_config elastic;
	uint64_t lent_ns; /* when limits were last decided on */
	struct window window_1s;
	struct lease_spans *spans; /* NULL: no caller wants to know */
	int span_watchers;
};

/*
 * One of the other sensor's calls: whether it misses this lessee for good. *unnamed counts the calls
 * since it was named that missed it at work: it is late with who just began, and at a small share,
 * or on a machine that is short of processors, few of the times between two calls have any. Pure.
 */
bool arbitration_is_missed(unsigned *unnamed, bool has_worked, bool is_named);
/* Notes what a lessee was charged in the card's sum. */
void arbitration_count_charge(struct arbitration *a, struct lessee *l, uint64_t charged_ns);
/* Tells a gang's member how much it may have in flight. */
void arbitration_publish_depth(const struct arbitration *a, struct lessee *l);
/*
 * Whose turn it is of each lessee's processes; to be called before states are published, which are the
 * arbiter's. Returns when to step again at the latest.
 */
uint64_t arbitration_publish_turns(struct arbitration *a, uint64_t now_ns);
/* How long its lease may rest before it should ring: learned between its leases, and its processes' turns. */
void arbitration_publish_patience(struct lessee *l);
/* Notes which tenant has the card now; `spans` is there. */
void arbitration_note_span(struct arbitration *a, uint64_t now_ns);
/*
 * Whether nothing is to be done before a lessee rings: none has work, demand, or state that changes with time alone, and all
 * of them ring. Then the thread wakes for a pulse each ARBITRATION_SLEEP_NS.
 */
bool arbitration_may_sleep(const struct arbitration *a);
/* Windows, figures for NVML in the tenants, heartbeats, limits that are lent; says when the next is due. */
void arbitration_pulse(struct arbitration *a, uint64_t now_ns);
