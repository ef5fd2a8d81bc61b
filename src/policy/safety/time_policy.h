/*
 * Compares the GPU time that the driver measured of a tenant's processes with the time that the tenant was charged for. The
 * driver's figure is independent of the tenant's reports. A tenant whose measured time stays above its charge and above its share
 * launches past the library, or makes others pay for its work: violation "over_time".
 *
 * The driver observes the GPU five times a second, and each time counts the GPU's use for the one process that works at that
 * moment. These are *samples*. A *reading* fetches those of the last 0.6 s. By chance, a tenant may get more samples than its
 * share. If turns repeat in the rhythm of the samples, this may last for many seconds. So samples are *certain* to show unpaid
 * work only in two cases. Either the tenant was charged for nothing that it might do at that time, or the other tenants have
 * samples for all the time that they were charged for. Otherwise samples are only *likely* to show unpaid work, and a violation
 * needs many more.
 *
 * The three samples of a reading show the use of 600 ms, but it is known only roughly when these began. So they are compared with
 * the peak: the largest share of the GPU's time that the tenant was charged for in any 600 ms of the last second.
 *
 * A tenant may report its work truthfully, but begin it whenever it likes, and so get more than its cap. Then the arbiter calls
 * the charge unauthorized (arbiter.h: Obedience), and the peak excuses less: only the part of it that the authorized charge is
 * of the whole charge.
 *
 * An honest program, too, may use time that no report shows: the driver uses the GPU while it allocates and frees memory, and
 * while it creates contexts. So certain time above the peak is charged to the tenant, which then gets fewer turns. Only time
 * above both the peak and the tenant's share counts as unpaid.
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
	double share; /* share of the GPU's time that it may use, 0 to 1 (arbiter_add_reading() sets this) */
};

/*
 * A tenant's unpaid time. A reading increases it by what is above time_paid() plus slack, and above the tenant's share. A
 * reading below one of these decreases it, down to 0. All zero at first.
 */
struct time_account {
	uint64_t certain_ns, likely_ns;
};

/* Returns the share of the GPU's time that the tenant may have used by its charge: the authorized part of the peak. */
double time_paid(const struct time_reading *reading);
/* Returns the certain time of a reading, in ns, that is above time_paid() plus slack. */
uint64_t time_unreported_ns(const struct time_reading *reading);
/* Adds a reading. Returns true if the tenant is in violation, and this reading, too, shows unpaid time. */
bool time_is_over(struct time_account *account, const struct time_reading *reading);

/* One tenant's charge and samples on a GPU in one reading. Shares are of the GPU's time. */
struct time_claim {
	/* the largest shares charged in any 150 ms, and in any 600 ms, of the last second */
	double peak_150ms, peak_600ms;
	double charged, unauthorized; /* as in struct time_reading */
	double sampled;               /* sum of the samples of its processes */
	double certain, likely;       /* set by time_weigh(): as in struct time_reading */
};

/*
 * Decides what the samples show. `claim`: all tenants of the GPU. `busy`: share of the time in which the GPU worked.
 * is_any_foreign: a process without a tenant may work there too. Nothing is known of the time that it uses, so beside it no time
 * above a tenant's peak is certain, unless the tenant was charged for nothing.
 */
void time_weigh(struct time_claim *claim, unsigned count, double busy, bool is_any_foreign);
/*
 * Returns the share of a GPU's time in which it worked, but which neither samples nor charges explain; 0 if it is TIME_SLACK or
 * less. Only valid if no process without a tenant works there.
 */
double time_unexplained(const struct time_claim *claim, unsigned count, double busy);
