/*
 * Steps: many programs, mostly trainings, wait now and then for all the work that they have launched: a sync point. The work
 * between two sync points is a step. A turn that ends at a sync point costs the program nothing. A turn that ends elsewhere
 * costs the program its lead over the GPU (docs/decisions/turn-lengths.md). So a turn that would end within a step goes on to
 * the step's end. If a step ends shortly before the turn's time is over, the turn ends there. The difference is charged as
 * usual, so it evens out.
 *
 *     from half a step before the turn's time is over     the next sync point ends the turn
 *     when the turn's time and the step's are both over   the turn ends without a sync point
 *
 * The length of a step is the charge between sync points, divided by the number of sync points that the tenant reports. The
 * number is not trusted: a tenant that lies gets turns that are longer by STEPS_LATE of a step at most, and pays for them.
 *
 * In one part of a step, a program may launch faster than the GPU works, and live on that lead in another part. Under a lease
 * its lead is at most depth_ns. A program that profits from more may have a whole step's work in flight, because none of it is
 * left at the step's end. Now and then a trial finds out whether the program profits: some steps run with the usual depth, some
 * with the greater one.
 *
 * No clock, no I/O; not thread safe. Times are nanoseconds of charge, not of a clock.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* A step is awaited until STEPS_LATE x its usual length plus STEPS_LATE_NS. */
#define STEPS_LATE 1.15
#define STEPS_LATE_NS 1e6

/* Some steps run with the usual depth, some with a whole step as depth; then the result holds for a while. */
enum steps_trial { STEPS_TRY_USUAL, STEPS_TRY_AHEAD, STEPS_DECIDED };

struct steps {
	uint32_t sync_points;   /* as last reported */
	unsigned seen;          /* sync points counted so far, until length_ns is known */
	double since_ns;        /* charge at the latest sync point */
	double length_ns;       /* fading mean of the charge of a step */
	uint64_t gap_before_ns; /* gap_ns as reported at the latest sync point */
	double gap_ns;          /* fading mean of the time from a sync point to the next launch */
	/* the trial of depths: steps_may_be_ahead() */
	enum steps_trial trial;
	unsigned tried; /* steps so far in this part of the trial */
	/* total length of the steps with the usual depth, and with a step's depth */
	double tried_ns[2];
	bool is_ahead_worth;
};

/*
 * Call at each step of the arbiter. The tenant reports sync_points (with any start value; wraps around) and gap_ns, the total
 * time from a sync point to the next launch. charged_ns is the tenant's total charge. may_try: a trial of depths may run,
 * because the tenant has leases and its depth follows steps_may_be_ahead().
 */
void steps_observe(struct steps *s, uint32_t sync_points, uint64_t gap_ns, double charged_ns,
		   bool may_try);
/* 0 if unknown, or longer than most_ns. */
double steps_length_ns(const struct steps *s, double most_ns);
/* True if the work of a whole step may be in flight. */
bool steps_may_be_ahead(const struct steps *s, double most_ns);
/* The charge that is left until the present step has taken too long; 0 if it has, or no length is known. */
double steps_left_ns(const struct steps *s, double charged_ns, double most_ns);
