/* Shared by the files of an arbitration (arbitration.h). The worker's lock guards everything except `changed`. */
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
	/* Each step reads these fields even of waiting tenants, so they share one cache line. */
	_Alignas(64) struct lessee *next;
	int index; /* in the arbiter */
	enum lease_state published;
	enum region_sync_point wants_sync_point;
	uint64_t seen_ns; /* when `seen` was observed */
	struct arbiter_observation seen;

	struct arbitration *owner;
	struct region_control *control;
	struct region_report *report;
	unsigned device;
	struct observer observer;
	bool paused;
	struct doorbell doorbell;
	/* Work is in flight while the lease is closing or stopped: the doorbell must ring when it ends. */
	bool is_ending;
	struct lend_tenant elastic;
	uint64_t lends, reclaims;
	struct window window_1s, window_60s;
	struct window unauthorized_1s; /* the part of the charge that was unauthorized (arbiter.h) */
	/*
	 * wanted_ns: time for which the lessee worked or waited to work, up to the latest tick; wanted_60s: its last minute;
	 * waited_at_tick_ns: the arbiter's waited_ns at that tick
	 */
	uint64_t wanted_ns, waited_at_tick_ns;
	struct window wanted_60s;
	struct step_window steps;
	/* The tenant's use of the GPU as NVML measured it (gpu/sensor.h); `use` is valid only if has_use. */
	bool has_use;
	double use;
	uint64_t use_busy_ns; /* observer.busy_ns when `use` was last set */
	/* State and latest result of arbitration_is_unlisted(). */
	unsigned unlisted;
	bool is_unlisted;
	/* How much of the tenant's charged time is in arbitration.charged_ns. */
	uint64_t charged_counted_ns;
	uint64_t charged_at_tick_ns;
	bool is_quiet; /* the last tick found no charge and published only zeros */
	uint64_t tick_ns;
	int gang; /* number on the board of gangs; negative: none */
	struct gang_command gang_command;
	uint32_t turn;     /* as last published (region.h) */
	bool shares_space; /* in a space group, so launches may have to pay tokens */
	char tenant[REGION_NAME_MAX];
};

struct arbitration {
	struct worker worker;
	/* Incremented by doorbell_wake() on any change, and to stop the thread. Needs no lock. */
	_Atomic uint32_t changed;
	bool can_wait_on_doorbells; /* the kernel can wait on several doorbells */
	struct doorbell_list doorbells;
	/* The board is shared with the other GPUs' arbitrations. May be NULL. */
	struct gangs *gangs;
	unsigned card;
	unsigned gang_count; /* tenants with a gang number */
	uint64_t to_wake;    /* bit mask of GPUs whose threads must be woken */
	struct arbiter *arbiter;
	struct arbiter_config config;
	bool is_paced;
	bool has_turns;
	int had_lease; /* the last lease holder's index in the arbiter; -1: that tenant was removed */
	struct lessee *lessees;
	unsigned lessee_count, process_count;
	unsigned space_count;    /* tenants that share by space */
	bool is_missing_logged;  /* the first tenant with is_unlisted was logged */
	uint64_t unlisted_count; /* how often is_unlisted became true */
	uint64_t stepped_ns, observed_ns;
	bool is_still;      /* no doorbell has rung since the last step */
	bool needs_polling; /* some tenant may change without ringing, so must be polled */
	uint64_t next_tick_ns;
	/* No tenant has work or demand: ticks and polls are rare until a doorbell rings. */
	bool is_sleeping;
	/* When on_memory was last called for memory that no census has seen. */
	uint64_t new_memory_reported_ns;
	bool has_memory_request;
	uint64_t request_reported_ns;
	void (*on_memory)(void *data);
	void *on_memory_data;
	uint64_t charged_ns;
	struct lend_config elastic;
	uint64_t limits_decided_ns;
	struct window window_1s;
	struct lease_spans *spans;
	int span_watchers;
};

/*
 * Whether NVML's lists of processes (gpu/sensor.h) lack the tenant. Call for each list: `has_worked` says whether the tenant
 * worked since the last list, `is_named` whether this list has it. *unlisted counts the lists that lack a working tenant since
 * it was last listed. A few such lists are normal for new processes, small shares or a busy machine, so this is false below
 * ARBITRATION_UNLISTED.
 */
bool arbitration_is_unlisted(unsigned *unlisted, bool has_worked, bool is_named);
void arbitration_count_charge(struct arbitration *a, struct lessee *l, uint64_t charged_ns);
void arbitration_publish_depth(const struct arbitration *a, struct lessee *l);
/* Decides and publishes turns of processes. Call before publishing lease states. Returns the deadline of the next step. */
uint64_t arbitration_publish_turns(struct arbitration *a, uint64_t now_ns);
/* Publishes after how long without work the tenant rings its doorbell, as learned from the gaps in its work. */
void arbitration_publish_patience(struct lessee *l);
/* a->spans must not be NULL. */
void arbitration_note_span(struct arbitration *a, uint64_t now_ns);
/* True if a ring will end the sleep: no tenant has work, demand or changing state, and every doorbell is trusted. */
bool arbitration_may_sleep(const struct arbitration *a);
/* Updates averages of charged GPU time (window.h), what NVML reports to tenants, heartbeats, lent limits and the next tick. */
void arbitration_tick(struct arbitration *a, uint64_t now_ns);
