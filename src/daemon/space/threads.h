/*
 * Computes an MPS client's share of the SMs (the GPU's processors). MPS rounds a percentage down to whole pairs of SMs: of an
 * H200's 132, clients of 10, 15, 30 and 45 % get 12, 18, 38 and 58.
 *
 * A limit is rounded to the nearest pair, at least one. If rounded up, limits of 40 and 60 % would overlap (54 and 80 of 132),
 * and kernels of two clients that share SMs wait for each other. Pure.
 */
#pragma once

struct mps_threads {
	double pct;      /* percentage given to MPS */
	double part_pct; /* resulting share of the SMs; above 0, at most 100 */
};

/*
 * Returns an MPS client's percentage and share of the SMs for a limit of limit_pct (above 0, at most 100). `sms` is the number
 * of SMs of the card or instance; 0: unknown, so MPS gets limit_pct itself and rounds down.
 */
struct mps_threads mps_threads_for(double limit_pct, unsigned sms);
