/*
 * How far a tenant's share of a GPU is from the share that it asked for (Lu et al., equation 5: docs/reference/seeds.md). There
 * the share asked for is one number; here it is a range, from the guarantee to the limit. Within the range the delta is 0. A
 * tenant that wants less than its guarantee is measured against what it wants. No clock, no I/O.
 */
#pragma once

/* All values are percent of the GPU's time, averaged over the same window. wanted_pct: the time for which it had work. */
double share_delta_pct(double guarantee_pct, double limit_pct, double wanted_pct, double got_pct);
