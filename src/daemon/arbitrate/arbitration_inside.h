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
#include "daemon/arbitrate/bell.h"
#include "daemon/arbitrate/lease_spans.h"
#include "daemon/arbitrate/observe.h"
#include "daemon/arbitrate/step_window.h"
#include "daemon/arbitrate/window.h"
#include "daemon/util/worker.h"
#include "policy/lease/arbiter.h"
#include "policy/lease/rules/lend.h"

struct gangs;

struct lessee {
	/* The fields that each step reads of waiting lessees come first, in one cache line. */
	_Alignas(64) struct lessee *next;
	int index; /* the lessee's number in the arbiter */
	enum lease_state published;
	enum region_sync_point wants_sync_point; /* as last published to the tenant */
	uint64_t seen_ns;                        /* when `seen` was observed */
	struct arbiter_observation seen;

	struct arbitration *owner;
	struct region_control *control;
	struct region_report *report;
	unsigned device;
	struct observer observer;
	bool paused;
	struct bell bell;
	/*
	 * at the last observation the lessee had work in flight, but no lease that permits launches
	 */
	bool is_ending;
	struct elastic_tenant elastic;
	uint64_t lends, reclaims;
	struct window window_1s, window_60s;
	struct step_window steps;
	/* `use` is valid: the lessee's use of the card, by another sensor (sensor.h) */
	bool has_use;
	double use;
	uint64_t use_busy_ns; /* observer.busy_ns at that sensor's last report */
	/* the count that arbitration_is_missed() keeps; is_missed: what it last returned */
	unsigned unnamed;
	bool is_missed;
	/* the part of the lessee's charged time that is already in the card's sum */
	uint64_t charged_counted_ns;
	uint64_t pulsed_ns; /* the lessee's charged time at the last pulse */
	bool is_quiet;      /* all published figures of the lessee are zero */
	uint64_t quiet_ns;  /* when the lessee was last seen to be quiet */
	int gang;           /* the lessee's number in the table of gangs; negative: none */
	struct gang_word gang_word;
	uint32_t turn;                /* the turn as last published to the tenant (region.h) */
	bool shares_space;            /* in a space group: its launches may have to pay tokens */
	char tenant[REGION_NAME_MAX]; /* for records and logs */
};

struct arbitration {
	struct worker worker; /* sleeps on `changed` */
	/* incremented by bell_wake() on any change, and to stop the thread */
	_Atomic uint32_t changed;
	bool has_bells; /* the kernel can wait on several doorbells */
	struct bell_list listened;
	struct gangs *gangs; /* shared with the other cards' arbitrations; may be NULL */
	unsigned card;
	unsigned gang_count; /* number of lessees that have a gang number */
	uint64_t to_wake;    /* bit mask of cards whose threads must be woken */
	struct arbiter *arbiter;
	struct arbiter_config config;
	bool is_paced;  /* ARBITER_POLICY_FEEDBACK: launches pay tokens, and grants are published */
	bool has_turns; /* a tenant's processes take turns within its leases */
	int had_lease;  /* number, in the arbiter, of the last lease holder */
	struct lessee *lessees;
	unsigned lessee_count, process_count;
	unsigned space_count;  /* lessees that share by space */
	bool has_told;         /* a lessee that the other sensor misses has been logged */
	uint64_t missed_count; /* how many times a lessee went missing from that sensor's list */
	uint64_t stepped_ns, observed_ns;
	bool is_still;     /* no doorbell has rung since the last step */
	bool needs_looks;  /* some lessee may change without ringing, so it must be polled */
	uint64_t pulse_ns; /* when the next pulse is due */
	/* No lessee has work or demand: pulses and polls are rare until a doorbell rings. */
	bool is_sleeping;
	uint64_t fresh_ns; /* when on_fresh was last called because of measured memory */
	/*
	 * has_asked: a memory request is still to be reported; asked_ns: when one was last reported
	 */
	bool has_asked;
	uint64_t asked_ns;
	void (*on_fresh)(void *data); /* arbitration_set_fresh() */
	void *fresh_data;
	uint64_t charged_ns; /* time charged to all present and past lessees */
	struct elastic_config elastic;
	uint64_t lent_ns; /* when lent limits were last decided */
	struct window window_1s;
	struct lease_spans *spans; /* NULL: not recorded */
	int span_watchers;
};

/*
 * Evaluates one list of the other sensor (sensor.h) for one lessee. *unnamed counts how many lists
 * in a row did not name the lessee although it had worked. Returns true if these are enough to say
 * that the sensor misses the lessee permanently. Single misses are normal: the sensor is late for
 * new processes, and may miss a lessee with a small share or on an overloaded machine. Pure.
 */
bool arbitration_is_missed(unsigned *unnamed, bool has_worked, bool is_named);
/* Adds a lessee's new charge to the card's sum. */
void arbitration_count_charge(struct arbitration *a, struct lessee *l, uint64_t charged_ns);
/* Publishes how much work a member of a gang or space group may have in flight. */
void arbitration_publish_depth(const struct arbitration *a, struct lessee *l);
/*
 * Decides and publishes which process of each lessee has its turn. Call before lease states are
 * published. Returns the latest time of the next step.
 */
uint64_t arbitration_publish_turns(struct arbitration *a, uint64_t now_ns);
/*
 * Publishes how long the lessee may be idle in its lease before it should ring the doorbell. The
 * value is learned from the gaps between its leases and its processes' turns.
 */
void arbitration_publish_patience(struct lessee *l);
/* Records which tenant has the card now. a->spans must not be NULL. */
void arbitration_note_span(struct arbitration *a, uint64_t now_ns);
/*
 * Whether nothing needs to be done until a lessee rings: no lessee has work, demand, or state that
 * changes with time, and all of them ring. Then the thread wakes for a pulse every
 * ARBITRATION_SLEEP_NS.
 */
bool arbitration_may_sleep(const struct arbitration *a);
/*
 * Updates windows, the figures that NVML shows inside tenants, heartbeats and lent limits. Sets
 * when the next pulse is due.
 */
void arbitration_pulse(struct arbitration *a, uint64_t now_ns);
