/*
 * Gangs: tenants with work on several devices, which get their turns on all of them at the same time. A collective operation
 * ends on no device before it has begun on all devices. A tenant with a lease on one device, while another tenant has the next
 * device, would spin through its lease and pay for it.
 *
 * Each device keeps its own arbiter, virtual time and tokens. The arbiters share a board: plain data, for gang_decide(). For
 * each device and step of its arbiter:
 *
 *     arbiter_step()  ->  arbiter_gang_report()  ->  gang_set_report()  ->  gang_decide()
 *                     ->  gang_command()  ->  arbiter_set_gang(); if that changed: step once more
 *
 * Terms: a rank is the part of a gang that runs on one device. The phases of a gang's turn are:
 *
 *   waiting    The gang has work on devices that are leased out. The devices where it has work now take part in its next turn.
 *              A device where it has had none for GANG_COME_NS is left to other tenants.
 *   gathering  The gang's turn has come on all devices that take part (`due`), no other gang has one of them, and no other due
 *              gang that wants one of them is further behind. The tenants that hold leases there are closed (LEASE_CLOSING:
 *              they may launch no more), each at such a time that all devices are drained at the same moment.
 *   running    All devices were free at once, and the gang has GO on all. A device on which its work begins later is added,
 *              if no other gang has it. A device on which the gang falls idle is left to other tenants. This takes longer
 *              while the gang works on another device, because the ranks there wait for the idle rank.
 *   ending     The turn is over on one device, by whatever ends a lease there; or all ranks have been idle for so long that
 *              none is likely to go on soon; or another gang is due. The gang is closed on all devices, and no other tenant
 *              gets one of them before all are drained.
 *
 * A slip: if the work on one device does not end, it may wait for a rank that is held at the gate. That rank gets GO for a
 * moment, a launch or two at a time (`is_slip`). If collectives are so close together that a slip begins the next one, all
 * ranks go on together for a moment, and are closed at once.
 *
 * So a gang gets equal time on all devices: as much as on the device where it gets least. No other tenant loses its turn. There
 * is no circular wait: a gang holds devices only from the moment, in one step, at which no other gang has any of them. From
 * then on it waits only for drains, which have deadlines. Of two gangs, the one that is further behind in virtual time comes
 * first, else the one with the lower number from gang_add().
 *
 * A tenant is a gang while it is present (arbiter.h: active) on two or more leased devices. The caller owns the board. Not
 * thread safe. Times are of one monotonic clock, which all arbiters use.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define GANG_MAX 256 /* tenants that may become gangs */
#define GANG_MAX_DEVICES 64
/* If work is in flight for this much longer than predicted, it may be waiting for another rank. */
#define GANG_SLIP_NS UINT64_C(300000)
/*
 * From this long after the turn's predicted end, no held rank may launch any more (no slips, see above). Work that still does
 * not end is then awaited only until the deadline of its drain.
 */
#define GANG_SLIP_MAX_NS UINT64_C(20000000)
/* Until this long after the turn's predicted end, ranks slip one by one; then together, for GANG_SLIP_TOGETHER_NS. */
#define GANG_SLIP_ALONE_NS UINT64_C(3000000)
#define GANG_SLIP_TOGETHER_NS UINT64_C(1000000)
/* A rank that has been idle for less than this is awaited, because its next launch is probably near. */
#define GANG_COME_NS UINT64_C(5000000)
/* A turn's predicted end is moved to an earlier time only by at least this much, because each move wakes all devices. */
#define GANG_SOONER_NS UINT64_C(100000)
#define GANG_GATHER_MAX_NS \
	UINT64_C(10000000) /* a turn's start or end is planned at most this far ahead */

enum gang_order {
	GANG_NONE,
	GANG_WAIT,   /* gets no lease before the gang's turn */
	GANG_GATHER, /* comes next: the device should be free at at_ns and kept free */
	GANG_GO,     /* has the lease, or should get it next */
	GANG_CLOSE,  /* its work should end at at_ns; then the device is kept free */
};

struct gang_command {
	enum gang_order order;
	uint64_t at_ns;
	/* on some device the gang's work outlives its drain's deadline, and a rank of the gang waits at a gate */
	bool is_stuck;
	bool is_slip; /* with GANG_GO: the library keeps no more work in flight than necessary */
	/* Shortest idle time of a rank that holds a lease on another device; 0 if it has work, UINT64_MAX if there is none. */
	uint64_t idle_elsewhere_ns;
};

/* A device's report on a tenant. */
struct gang_report {
	/* the tenant is active on the device (arbiter.h), whose arbiter is in mode ARBITER_LEASES */
	bool is_present;
	bool wants;
	uint64_t idle_ns; /* time since the tenant's latest demand */
	bool waits;       /* a thread is held at the gate */
	bool is_due;      /* would get the lease now if it were no gang */
	bool holds;
	bool drains; /* lost the lease; in-flight work is awaited */
	/* its work is in flight for longer than predicted, by more than GANG_SLIP_NS */
	bool is_late;
	bool is_stuck;  /* its work outlives its drain's deadline */
	bool may_yield; /* had the lease for a quantum, so may yield to another gang */
	bool is_over;
	/* has the lease, and is idle for so long that the turn ends if all other ranks are idle too */
	bool is_idle;
	bool is_vacant; /* no tenant has the lease, and none drains */
	/* how far the gang's virtual time is behind other tenants'; grows while the gang waits */
	double behind;
	uint64_t free_in_ns; /* predicted time until the device can be free for the gang */
	uint64_t drain_ns;   /* predicted time until the tenant's in-flight work is done */
	enum gang_order order;
};

struct gang_board;

struct gang_board *gang_board_new(void); /* NULL if out of memory */
/* NULL is allowed; returns NULL. */
struct gang_board *gang_board_free(struct gang_board *board);

/* Returns the number of a tenant that may become a gang, -ENOSPC or -ENOMEM. */
int gang_add(struct gang_board *board);
/* gang_remove() and the functions below ignore unused numbers. */
void gang_remove(struct gang_board *board, int gang);

/* Stores a device's report on the gang, until its next report. Pass all zeros if the tenant is not on the device. */
void gang_set_report(struct gang_board *board, int gang, unsigned device,
		     const struct gang_report *report);
/* Decides all turns. Returns the devices whose orders changed, a bit each: step their arbiters soon. */
uint64_t gang_decide(struct gang_board *board, uint64_t now_ns);
struct gang_command gang_command(const struct gang_board *board, int gang, unsigned device);
/* Returns the number of turns that the gang began on two or more devices. */
uint64_t gang_turns(const struct gang_board *board, int gang);
