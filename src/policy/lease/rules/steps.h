/*
 * Steps: many programs, trainings above all, wait now and then for all that they have launched: a sync point. A turn that
 * ends there takes nothing away. One that ends elsewhere takes the program's lead over the GPU
 * (docs/decisions/turn-lengths.md). So a turn that would end within a step goes on to the step's end, and one ends a
 * little early when a step ends shortly before. The difference is charged as usual, and so evens out.
 *
 *     from half a step before the turn's time is over     the next sync point ends it
 *     when its time is over, and the step's too           it ends without a sync point
 *
 * The length of a step is what the tenant was charged between sync points, by the number of them that it tells of. That
 * number is not trusted: a tenant that lies has turns that are longer by STEPS_LATE of a step at most, and pays for them.
 *
 * Within a step a program may live on a lead that it gained in another part of the step: alone it does, and under a lease it
 * may be ahead by depth_ns only. A program that profits from it may be ahead by a whole step; nothing of that is in flight
 * at the step's end. Whether it profits is tried now and then: some steps with, some without.
 *
 * Pure; not thread safe. Nanoseconds of charge, not of a clock.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* So much longer than usual a step may take before it is no longer waited for; and this on top. */
#define STEPS_LATE 1.15
#define STEPS_LATE_NS 1e6

/* What a step that begins now is for. */
enum steps_trial { STEPS_TRY_USUAL, STEPS_TRY_AHEAD, STEPS_DECIDED };

struct steps {
	uint32_t sync_points;      /* as last told */
	unsigned seen;             /* how many of them the length is known by, up to a few */
	double since_ns;           /* what was charged up to the last of them */
	double length_ns;          /* fading */
	uint64_t thread_before_ns; /* as told at the last sync point */
	double thread_ns;          /* of a step, what its thread does on the CPU; fading */
	/* The trial of depths; see steps_may_be_ahead(). */
	enum steps_trial trial;
	unsigned tried;     /* steps in this part of it */
	double tried_ns[2]; /* what they took in all, of the usual depth and of a step's */
	bool is_ahead_worth;
};

/*
 * The tenant has told of so many rests (counted without end, from any number), and of so much time of its thread between
 * them, and was charged so much in all. May a depth
 * be tried: is it under leases, and has what steps_may_be_ahead() says?
 */
void steps_see(struct steps *s, uint32_t sync_points, uint64_t thread_ns, double charged_ns,
	       bool may_try);
/* The length of a step; 0: not known, or longer than most_ns. */
double steps_length_ns(const struct steps *s, double most_ns);
/* Whether it may have a step's work in flight. */
bool steps_may_be_ahead(const struct steps *s, double most_ns);
/*
 * What is left until the present step has taken longer than it may, by what is charged so far; 0: it has, or
 * none is known.
 */
double steps_left_ns(const struct steps *s, double charged_ns, double most_ns);
