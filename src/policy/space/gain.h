/*
 * What tenants gain by having a card at the same time, and whether that is enough. Pure.
 *
 *   expected   From what each uses of the card alone: busy, the part of the time that it has work there, and
 *              filled, the part of the card's time that this work fills. Two that are busy b1 and b2 of the time do
 *              min(b1 + b2, 1) in turns; at the same time they slow each other down only where they would fill
 *              more than the card:
 *
 *                  gain = max(b1 + b2, 1) / max(f1 + f2, 1) - 1
 *
 *              It knows nothing of what kernels of several programs do to each other in the SMs, the caches and
 *              the memory, nor that full SMs may wait.
 *   measured   What a program's groups did while it was in them, beside turns (policy/space/space_gain.h). Where it is
 *              known it goes before what is expected.
 *
 * Both fade: programs change. A program that was sent back to turns needs more than the least to come again, so
 * that one at the border stays where it is.
 */
#ifndef ALLOT_POLICY_SPACE_GAIN_H
#define ALLOT_POLICY_SPACE_GAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GAIN_DEMAND_KNOWN_S 1.0   /* busy for so long */
#define GAIN_MEASURED_KNOWN_S 3.0 /* at work beside others for so long */
#define GAIN_DEMAND_HALF_S 60.0   /* of its time at work: older counts half */
#define GAIN_MEASURED_HALF_S 300.0
#define GAIN_MEASURED_FOR_S INT64_C(86400) /* then what was measured is forgotten: tried again */
#define GAIN_AGAIN 1.5                     /* times the least, for who took turns by this */

/* What is known of a program; all zero: nothing. Written to disk as it is. */
struct gain_record {
	double busy_s, pause_s, filled_s; /* alone; see policy/lease/rules/demand.h */
	double done_s, turns_s;           /* of its groups; see policy/space/space_gain.h */
	int64_t measured_at_s;            /* wall clock: when these two grew last */
	bool takes_turns;                 /* by what was decided last */
};

/* Adds what went up since. */
void gain_add_demand(struct gain_record *record, double busy_s, double pause_s, double filled_s);
void gain_add_measured(struct gain_record *record, double done_s, double turns_s, int64_t now_s);

bool gain_knows_demand(const struct gain_record *record);
/* 0.34: a third more than in turns. False: not known, or too long ago. */
bool gain_measured(const struct gain_record *record, int64_t now_s, double *ret_gain);
/* Of all these together, whose demand is known. */
double gain_expected(const struct gain_record *const *records, size_t count);

enum gain_source { GAIN_UNKNOWN, GAIN_EXPECTED, GAIN_MEASURED };

struct gain_verdict {
	enum gain_source source;
	double gain;
	bool is_enough; /* of no meaning where it is unknown */
};

/*
 * Of a program that would join others: all of the group have a record, NULL where it is not known whose. Nobody there:
 * beside one more like itself. least: 0.1 for a tenth more.
 */
struct gain_verdict gain_judge(const struct gain_record *self,
			       const struct gain_record *const *others, size_t count, double least,
			       int64_t now_s);

const char *gain_source_name(enum gain_source source); /* "measured", "expected"; NULL: unknown */

#endif
