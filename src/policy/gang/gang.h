/*
 * Gangs: tenants at work on several devices, which get their turns on all of them at the same time.
 * A collective operation ends on no device before it has begun on all; a tenant that has one device
 * while another's turn is on the next would spin through its lease, and pay for it.
 *
 * Each device keeps its own arbiter, virtual time and tokens. What they tell each other goes over a
 * board: plain data, and one pure decision. Per device and step of its arbiter:
 *
 *     arbiter_step()  ->  arbiter_gang_report()  ->  gang_tell()  ->  gang_decide()
 *                     ->  gang_word()  ->  arbiter_set_gang(); when that changed: step once more
 *
 * A gang's turn:
 *
 *   waiting    It has work on devices that are leased out. Those with work now take part in the next
 *              turn: one without does not keep a device from others, once it has been so for GANG_COME_NS.
 *   gathering  Its turn has come on all of them (`due`), no other gang is at one of them, and of the
 *              gangs for which that is so, none that wants the same device is further behind. The
 *              holders are closed so that all devices are drained at the same moment.
 *   running    All were free at once; now it has GO on all. A device on which its work begins later
 *              is added, if no other gang is there; one on which it falls idle is left to others, but
 *              not soon while it works on another: the ranks there wait for the one that rests.
 *   ending     Its turn is over on one device, by whatever ends a lease there, or all of its ranks have
 *              rested for long enough that none is likely to go on soon, or another gang is due:
 *              it is closed on all, and nobody gets one of them before all are drained. A rank
 *              that is held at the gate while the work on another device does not end may be what that
 *              waits for: it gets GO for a moment, a launch or two at a time (`is_slip`). Where
 *              collectives are so close together that its next is then begun, all ranks go on for
 *              a moment so, in step, and are closed at once.
 *
 * So a gang has what the device with the least for it gives: nobody's turn is taken anywhere. Nothing
 * waits in a circle: a gang holds devices only from the moment at which no other is at one of them, in
 * one step; all that it then waits for are drains, which have deadlines. Which of two comes first is
 * one number each, and for equal ones the older gang: a total order.
 *
 * A tenant is a gang while it is present (arbiter.h: active) on two leased devices or more.
 *
 * Ownership: the caller owns the board. Thread safety: none; one caller at a time. Times are of the
 * callers of all arbiters: one monotonic clock.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define GANG_MAX 256        /* tenants that may become gangs; further ones never do */
#define GANG_MAX_DEVICES 64 /* of the board: 0 <= device < that */
/* Work that ends later than predicted by this may wait for another rank, ... */
#define GANG_SLIP_NS UINT64_C(300000)
/* ... which is let go on until so long after the turn's predicted end; then drains' deadlines decide. */
#define GANG_SLIP_MAX_NS UINT64_C(20000000)
/* Helped rank by rank for so long, then all together, for so long each time. */
#define GANG_SLIP_ALONE_NS UINT64_C(3000000)
#define GANG_SLIP_TOGETHER_NS UINT64_C(1000000)
/* A rank that has been without work for less is waited for: it is on its way to its next launch. */
#define GANG_COME_NS UINT64_C(5000000)
/* A turn's end is moved forward for no less: each time all cards are woken. */
#define GANG_SOONER_NS UINT64_C(100000)
#define GANG_GATHER_MAX_NS UINT64_C(10000000) /* the most by which a device's end is waited for */

enum gang_order {
	GANG_NONE,   /* no gang: as every tenant */
	GANG_WAIT,   /* gets no lease by itself */
	GANG_GATHER, /* comes next: the device is to be free at at_ns, and stays so */
	GANG_GO,     /* has, or gets, the lease */
	GANG_CLOSE, /* its work is to have ended at at_ns; the device stays free until told otherwise */
};

struct gang_word {
	enum gang_order order;
	uint64_t at_ns;
	bool is_stuck; /* its work on another device has outlived a drain */
	bool is_slip;  /* with GANG_GO: no more in flight than must be */
	/* How long its ranks with a lease of another device have had nothing to do; UINT64_MAX: there are none. */
	uint64_t idle_elsewhere_ns;
};

/* One device's word on a tenant. */
struct gang_report {
	bool is_present;     /* has had work or demand of late, under leases */
	bool wants;          /* has demand now ... */
	uint64_t idle_ns;    /* ... or had some so long ago */
	bool waits;          /* a thread is held at the gate */
	bool is_due;         /* it would get the lease now, were it no gang */
	bool holds;          /* has the lease */
	bool drains;         /* has lost it, and its work in flight is awaited */
	bool is_late;        /* draining, for longer than predicted by GANG_SLIP_NS */
	bool is_stuck;       /* has outlived a drain */
	bool may_yield;      /* has had the lease for a quantum: to another gang */
	bool is_over;        /* has the lease, and should give it up ... */
	bool is_idle;        /* ... or has rested for so long that it should, if all do */
	bool is_vacant;      /* nobody has the device */
	double behind;       /* of its turn, in virtual time: the more, the longer it has waited */
	uint64_t free_in_ns; /* until the device can be free for it, predicted */
	uint64_t drain_ns;   /* until its own work in flight is done, predicted */
	enum gang_order order; /* in force when this was told */
};

struct gang_board;

struct gang_board *gang_board_new(void);                      /* NULL when out of memory */
struct gang_board *gang_board_free(struct gang_board *board); /* NULL is fine; returns NULL */

/* A tenant that may become a gang. Returns its number; -ENOSPC, -ENOMEM. */
int gang_add(struct gang_board *board);
/* Here and below numbers out of range or not in use are ignored. */
void gang_remove(struct gang_board *board, int gang);

/* What a device says now; holds until it says something else. Its lease there is gone: all zero. */
void gang_tell(struct gang_board *board, int gang, unsigned device,
	       const struct gang_report *report);
/*
 * Decides all turns. Returns the devices whose words changed, a bit each: their arbiters should be
 * stepped soon.
 */
uint64_t gang_decide(struct gang_board *board, uint64_t now_ns);
struct gang_word gang_word(const struct gang_board *board, int gang, unsigned device);
/* Turns that the gang has begun, on two devices or more. */
uint64_t gang_turns(const struct gang_board *board, int gang);
