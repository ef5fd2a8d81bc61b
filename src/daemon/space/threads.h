/*
 * The part of a card's SMs that a client of MPS is limited to. MPS takes a percentage and rounds it down to whole pairs of
 * SMs: on an H200 of 132, clients of 10, 15, 30 and 45 % have 12, 18, 38 and 58 (their work, 2026-11-23: 9.3, 13.9, 29.4
 * and 44.6 % of the card's). So a limit is rounded to the nearest pair here, at least to one. Not up: of 132 SMs, 40 and 60 %
 * would be 54 and 80. Where two clients have two SMs in common, each kernel of one waits there for the other's (a decoder
 * was 6 % slower, H200, 2026-11-28). Pure.
 */
#pragma once

struct mps_threads {
	double pct;      /* what MPS is told */
	double part_pct; /* of the card's SMs, what its client has then; 0 < .. <= 100 */
};

/* limit_pct: 0 < .. <= 100. sms: of the card or instance; 0: not known, and what MPS rounds down is lost. */
struct mps_threads mps_threads_for(double limit_pct, unsigned sms);
