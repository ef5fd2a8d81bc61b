/*
 * Gangs: tenants with work on several devices, which get their turns on all of them at the same time. A collective operation
 * ends on no device before it has begun on all devices. A tenant with a lease on one device, while another tenant has the next
 * device, would spin through its lease and pay for it.
 *
 * Each device keeps its own arbiter, virtual time and tokens. The arbiters share a board: plain data, and one pure decision.
 * For each device and step of its arbiter:
 *
 *     arbiter_step()  ->  arbiter_gang_report()  ->  gang_tell()  ->  gang_decide()
 *                     ->  gang_word()  ->  arbiter_set_gang(); if that changed: step once more
 *
 * Terms: a rank is the part of a gang that runs on one device. The phases of a gang's turn are:
 *
 *   waiting    The gang has work on devices that are leased out. The devices where it has work now take part in its next turn.
 *              A device where it has had none for GANG_COME_NS is left to other tenants.
 *   gathering  Its turn has come on all these devices (`due`), no other gang has one of them, and no other such gang that
 *              wants one of the devices is further behind. The holders are closed so that all devices are drained at the
 *              same moment.
 *   running    All devices were free at once, and the gang has GO on all. A device on which its work begins later is added,
 *              if no other gang has it. A device on which the gang falls idle is left to other tenants, but not soon while
 *              it works on another device, because the ranks there wait for the idle rank.
 *   ending     The turn is over on one device, by whatever ends a lease there; or all ranks have been idle for so long that
 *              none is likely to go on soon; or another gang is due. The gang is closed on all devices, and no other tenant
 *              gets one of them before all are drained. If the work on one device does not end, it may wait for a rank that
 *              is held at the gate. That rank gets GO for a moment, a launch or two at a time (a slip, `is_slip`). If
 *              collectives are so close together that a slip begins the next one, all ranks go on together for a moment, and
 *              are closed at once.
 *
 * So a gang gets as much as the device that has least for it gives: no other tenant loses its turn anywhere. There is no
 * circular wait: a gang holds devices only from the moment, in one step, at which no other gang has any of them. From then on it
 * waits only for drains, which have deadlines. The order of two gangs is decided by one number for each, and by age if the
 * numbers are equal: a total order.
 *
 * A tenant is a gang while it is present (arbiter.h: active) on two or more leased devices.
 *
 * The caller owns the board. Not thread safe: one caller at a time. Times are of one monotonic clock, which all arbiters use.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define GANG_MAX 256        /* tenants that may become gangs; further tenants never do */
#define GANG_MAX_DEVICES 64 /* a device's number is below this */
/* Work that ends later than predicted by more than this may be waiting for another rank. */
#define GANG_SLIP_NS UINT64_C(300000)
/* Slips are given until this long after the turn's predicted end. After that, the drains' deadlines decide. */
#define GANG_SLIP_MAX_NS UINT64_C(20000000)
/* For this long, ranks slip one by one. After that all slip together, for GANG_SLIP_TOGETHER_NS each time. */
#define GANG_SLIP_ALONE_NS UINT64_C(3000000)
#define GANG_SLIP_TOGETHER_NS UINT64_C(1000000)
/* A rank that has been without work for less than this is waited for: it is on its way to its next launch. */
#define GANG_COME_NS UINT64_C(5000000)
/* A turn's end is moved forward only by this much or more, because each time all devices are woken. */
#define GANG_SOONER_NS UINT64_C(100000)
#define GANG_GATHER_MAX_NS \
	UINT64_C(10000000) /* the longest predicted drain that a turn's begin or end waits for */

enum gang_order {
	GANG_NONE,   /* not a gang: like any other tenant */
	GANG_WAIT,   /* gets no lease on its own */
	GANG_GATHER, /* comes next: the device should be free at at_ns, and be kept free then */
	GANG_GO,     /* has the lease, or gets it */
	GANG_CLOSE, /* its work should have ended at at_ns; then the device is kept free until the order changes */
};

struct gang_word {
	enum gang_order order;
	uint64_t at_ns;
	bool is_stuck; /* its work on another device has outlived a drain */
	bool is_slip;  /* with GANG_GO: no more in flight than necessary */
	/* How long its ranks with a lease on another device have been idle; UINT64_MAX if there are no such ranks. */
	uint64_t idle_elsewhere_ns;
};

/* What one device reports of a tenant. */
struct gang_report {
	bool is_present;  /* has had work or demand recently, under leases */
	bool wants;       /* has demand now */
	uint64_t idle_ns; /* time since its latest demand */
	bool waits;       /* a thread is held at the gate */
	bool is_due;      /* would get the lease now if it were not a gang */
	bool holds;       /* has the lease */
	bool drains;      /* lost the lease, and its in-flight work is awaited */
	bool is_late;     /* drains for longer than predicted, by more than GANG_SLIP_NS */
	bool is_stuck;    /* its work has outlived a drain */
	bool may_yield;   /* has had the lease for a quantum, and may yield to another gang */
	bool is_over;     /* has the lease, and its turn is over */
	bool is_idle; /* has the lease, and has been idle so long that its turn is over if all its ranks are idle */
	bool is_vacant;      /* no tenant has the device */
	double behind;       /* how far its turn is behind, in virtual time: grows while it waits */
	uint64_t free_in_ns; /* predicted time until the device can be free for it */
	uint64_t drain_ns;   /* predicted time until its own in-flight work is done */
	enum gang_order order; /* order in force when this was reported */
};

struct gang_board;

struct gang_board *gang_board_new(void); /* NULL if out of memory */
/* NULL is allowed; always returns NULL. */
struct gang_board *gang_board_free(struct gang_board *board);

/* Adds a tenant that may become a gang. Returns its number, -ENOSPC or -ENOMEM. */
int gang_add(struct gang_board *board);
/* This and all functions below ignore numbers out of range or not in use. */
void gang_remove(struct gang_board *board, int gang);

/*
 * Records a device's report, which holds until the next one. If the tenant no longer has a place on the device, the report is
 * all zero.
 */
void gang_tell(struct gang_board *board, int gang, unsigned device,
	       const struct gang_report *report);
/* Decides all turns. Returns the devices whose orders changed, one bit each. Their arbiters should be stepped soon. */
uint64_t gang_decide(struct gang_board *board, uint64_t now_ns);
struct gang_word gang_word(const struct gang_board *board, int gang, unsigned device);
/* Returns the number of turns that the gang has begun on two or more devices. */
uint64_t gang_turns(const struct gang_board *board, int gang);
