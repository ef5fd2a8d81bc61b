/*
 * Computes the share of a card's SMs that an MPS client is limited to. MPS takes a percentage and
 * rounds it down to whole pairs of SMs. On an H200 with 132 SMs, clients of 10, 15, 30 and 45 % get
 * 12, 18, 38 and 58 SMs (measured share of the card's work, 2026-11-23: 9.3, 13.9, 29.4 and 44.6
 * %).
 *
 * So this code rounds a limit to the nearest pair, at least one. If it rounded up, limits of 40 and
 * 60 % would give 54 and 80 of 132 SMs, which overlap. If two clients share two SMs, each kernel of
 * one waits there for the other's kernels (a decoder was 6 % slower, H200, 2026-11-28). Pure.
 */
#pragma once

struct mps_threads {
	double pct;      /* percentage given to MPS */
	double part_pct; /* resulting share of the card's SMs; above 0, at most 100 */
};

/*
 * Computes the share for a limit: limit_pct is above 0, at most 100. sms: SMs of the card or
 * instance. If 0 (unknown), MPS gets limit_pct itself, and the client loses what MPS rounds down.
 */
struct mps_threads mps_threads_for(double limit_pct, unsigned sms);
