/*
 * Compares the GPU time that the driver measured of a tenant's processes with the time that the tenant was charged for. The
 * driver's figure is independent of the tenant's reports. A tenant whose measured time stays above both its charge and its share
 * launches past the library, or makes others pay for its work: violation "over_time".
 *
 * The driver observes the GPU five times a second, and each time counts the GPU's use for the one process that works at that
 * moment. These are *samples*. A *reading* fetches those of the last 0.6 s. By chance, a tenant may get more samples than its
 * share. If turns repeat in the rhythm of the samples, this may last for many seconds. So time_weigh() says of how much time the
 * samples are *certain* to show work of the tenant. The rest is only *likely*, and for a violation it must last much longer.
 *
 * The three samples of a reading show the use of 600 ms, but it is known only roughly when these began. So they are compared with
 * the peak: the largest share of the GPU's time that the tenant was charged for in any 600 ms of the last second.
 *
 * A tenant may report its work truthfully, but begin it whenever it likes, and so get more than its cap. Then the arbiter calls
 * the charge unauthorized (arbiter.h: Obedience), and the peak excuses less: only the part of it that the authorized charge is
 * of the whole charge.
 *
 * Honest programs, too, use time that they do not report: the driver uses the GPU when memory is allocated or a context is made.
 * So time within the tenant's share is no violation.
 *
 * No clock, no I/O, no static data.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* share of a GPU's time by which samples may exceed the charge: their error, and time that no tenant pays for */
#define TIME_SLACK 0.1
/* A tenant with a smaller peak than this counts as charged for nothing. */
#define TIME_NOTHING 0.01
/* A longer interval between readings counts as this, so one reading alone never shows a violation. */
#define TIME_LONGEST_NS UINT64_C(500000000)
/* unpaid time from which a tenant is in violation */
#define TIME_CERTAIN_NS UINT64_C(500000000)
#define TIME_LIKELY_NS UINT64_C(10000000000)

struct time_reading {
	uint64_t passed_ns; /* time since the last reading */
	double peak;        /* the largest charged share of the last second (see above), 0 to 1 */
	/* shares of the GPU's time in which, by the samples, the tenant certainly or likely worked, 0 to 1 */
	double certain, likely;
	/* shares of the last second: all that was charged, and the part of it that was unauthorized (see above) */
	double charged, unauthorized;
	double share; /* share of the GPU's time that the tenant may use: struct time_claim */
};

/*
 * A tenant's unpaid time. A reading above the larger of its share and time_paid() plus slack increases it, and a reading below
 * that decreases it, down to 0. All zero at first.
 */
struct time_account {
	uint64_t certain_ns, likely_ns;
};

/* Returns the share of the GPU's time that the tenant may have used by its charge: the authorized part of the peak. */
double time_paid(const struct time_reading *reading);
/* Adds a reading. Returns true if the tenant is in violation, and this reading, too, shows unpaid time. */
bool time_is_over(struct time_account *account, const struct time_reading *reading);

/* One tenant on a GPU in one reading. Shares are of the GPU's time, 0 to 1. */
struct time_claim {
	double cores, limit; /* its guarantee, 0 if none; its cap, 1 if none */
	/* Its time can't be compared, because its memory is or was moved: set peak_150ms and peak_600ms to 1. */
	bool is_excused;
	/* the largest shares charged in any 150 ms, and in any 600 ms, of the last second */
	double peak_150ms, peak_600ms;
	double charged, unauthorized; /* as in struct time_reading */
	double sampled;               /* sum of the samples of its processes */
	/* Set by time_weigh(): as in struct time_reading. */
	double certain, likely;
	/* Set by time_weigh(): the share that the tenant may use while the others do what they do. */
	double share;
};

/*
 * Sets the last three fields of all tenants of a GPU. `busy`: share of the time in which the GPU worked for tenants.
 *
 * Samples are certain up to the charge plus the time that no charge explains. All samples are certain if the tenant was charged
 * for no work that it was allowed to begin, or if the other tenants have samples for all their charges. is_any_foreign: a
 * process without a tenant may work too. Its time is unknown. So then no time above the charge is certain, unless the tenant
 * was charged for no allowed work.
 *
 * A tenant's share is what the charges and samples of the others leave, and at least its part by guarantees among the tenants that use the
 * GPU. Those without a guarantee divide what the guarantees leave. It is at most the tenant's cap.
 */
void time_weigh(struct time_claim *claim, unsigned count, double busy, bool is_any_foreign);
/*
 * Returns the share of a GPU's time in which it worked, but which neither samples nor charges explain; 0 if it is TIME_SLACK or
 * less. Only valid if no process without a tenant works there.
 */
double time_unexplained(const struct time_claim *claim, unsigned count, double busy);
