/*
 * Compares the GPU time that the driver measured of a tenant's processes with the time that the tenant was charged for. The
 * driver's figure is independent of what the tenant says. A tenant whose measured time stays above its charged time launches
 * past the library, or makes others pay for its work: violation "over_time".
 *
 * The driver's samples are read now and then; each time is a *reading*. A sample covers a sampling period of the driver (1/6
 * to 1 s), which the reader does not know exactly. So it is compared with the peak: the largest share of the GPU's time that
 * the tenant was charged for in any part of the last second that is as short as a sampling period. Thus a tenant whose work
 * comes in bursts is never taken for one that does not pay. GPU time that a tenant takes between paid bursts is not found.
 *
 * No clock, no I/O, no static data.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* share of a GPU's time by which a sample may exceed the charge: the sample's error, and time that is charged to nobody */
#define TIME_SLACK 0.1
/* A longer interval between readings counts as this, so one reading alone never shows a violation. */
#define TIME_LONGEST_NS UINT64_C(500000000)
#define TIME_UNPAID_NS UINT64_C(500000000) /* unpaid time from which a tenant is in violation */

struct time_reading {
	uint64_t passed_ns; /* since the last reading */
	double peak;        /* the largest charged share since the last reading, 0 to 1 */
	double measured; /* sum of the latest samples of the tenant's processes, 0 to 1; 0: no sample */
};

/*
 * Adds a reading to *unpaid_ns (0 at first): measured time beyond peak and slack, less what other readings were below that.
 * Returns true while the tenant is in violation.
 */
bool time_is_over(uint64_t *unpaid_ns, const struct time_reading *reading);

/*
 * Returns the share of a GPU's time that none of its tenants and known processes explains; 0 if it is TIME_SLACK or less.
 * `busy`: share in which the GPU worked. `explained`: sum over all tenants and processes of the larger of peak and measured.
 */
double time_unexplained(double busy, double explained);
