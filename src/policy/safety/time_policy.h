/*
 * Compares the GPU time that the driver measured of a tenant's processes with the time that the tenant was charged for. The
 * driver's figure is independent of the tenant's reports. A tenant whose measured time stays above its charged time launches
 * past the library, or makes others pay for its work: violation "over_time".
 *
 * The driver observes the GPU five times a second, and each time counts the GPU's use for the one process that works at that
 * moment. These are *samples*. A *reading* fetches those of the last 0.6 s. By chance, a tenant may get more samples than its
 * share. If turns repeat in the rhythm of the samples, this may last for many seconds. So samples are *certain* to show unpaid
 * work only in two cases. Either the tenant was charged for nothing at that time, or the other tenants have samples for all the
 * time that they were charged for. Otherwise samples are only *likely* to show unpaid work, and a violation needs many more.
 *
 * It is not known exactly which time a sample covers. So it is compared with the peak: the largest share of the GPU's time that
 * the tenant was charged for in any 150 ms of the last second. Thus a tenant whose work comes in bursts is never taken for one
 * that does not pay. No clock, no I/O, no static data.
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
};

/* A tenant's unpaid time. A reading above peak plus slack increases it, a reading below decreases it. All zero at first. */
struct time_account {
	uint64_t certain_ns, likely_ns;
};

/* Returns true while the tenant is in violation. */
bool time_is_over(struct time_account *account, const struct time_reading *reading);

/*
 * Returns the share of a GPU's time that none of its tenants and known processes explains; 0 if it is TIME_SLACK or less.
 * `busy`: share in which the GPU worked. `explained`: sum over all tenants and processes of the larger of peak and measured.
 */
double time_unexplained(double busy, double explained);
