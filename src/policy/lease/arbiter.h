/*
 * The arbiter: who may run on one device, and when. Pure policy: no I/O, no clock, no threads. The
 * daemon, the simulations in tests/unit and anyone who wants to try a policy call the same code:
 *
 *     feed what was observed now  ->  arbiter_step()  ->  a lease state per tenant, and when to call
 *                                                         again at the latest
 *
 * Ownership: the caller owns the arbiter and frees it; no pointer into it outlives the next call.
 * Thread safety: none; one caller at a time. Times are nanoseconds of any monotonic clock.
 *
 * Which policy is a setting of the device (enum arbiter_policy); leases are the default, the others are
 * rivals to measure them by:
 *
 *   lease      below.
 *   token      In KubeShare's manner (token.c): a token of fixed length for one holder, a sliding window
 *              over which limits and guarantees are counted, what ran past the token counted in it. No
 *              prediction, no early end.
 *   feedback   Lu et al., Algorithm 2 (docs/reference/seeds.md; paced.c, feedback.h): all run at the
 *              same time, PACED: each launch pays tokens, which a control law grants by the difference between the share
 *              that is meant and the one that is measured.
 *
 * The policy of leases:
 *
 *   Free run    At most one tenant is active and it has no cap: every uncapped tenant is FREE.
 *               (Those that are idle too: their first launch needs no one's leave; the next step sees
 *               it and goes to leases. For the same reason an idle capped tenant with tokens is GO
 *               while the mode is IDLE or FREE, and only then.)
 *   Leases      Several active, or the active one is capped: one tenant at a time has GO. Next comes
 *               the one whose quantum would end first in virtual time (charged time / weight) among
 *               those that have demand and tokens. A lease ends when the quantum is over and another
 *               would be chosen, when the tokens are used up, when the holder has rested for too
 *               long while another waits, or, after min_lease_ns, when one came back that would
 *               have been chosen instead (or, after an absence of free_after_ns, that would be now).
 *               It ends by CLOSING, ahead of its time by the predicted work in flight; the next GO
 *               comes when the holder's work is done, or at the drain deadline: then the overlap
 *               is charged to the overrunner as well.
 *   Slices      Several active, no gang, no space group, and the program of one at least has short steps (steps.h) between
 *               which its thread has something to do: all run at once, and the hardware gives each process its time
 *               slices. What each is due by weight and what it had are counted; a tenant that is ahead, or above its
 *               cap, is held. With caps, not beside others without short steps, unless these have a lower priority. See
 *               sliced.c.
 *   Quantum     As short as the cost of a hand-over allows: that cost, measured (the time from grant to
 *               grant that nobody is charged for), over the part of the device's time that may go into it.
 *               This is switch_loss, and a third of what the caps of the active tenants leave
 *               unused in sum: who may have 90 % in all is served in shorter turns, so that shares
 *               hold over 100 ms too. A capped tenant gathers tokens for half a quantum,
 *               10 ms at most. While a gang is among those with work, turns are longer: turn_terms.h.
 *   Idleness    A holder gives way when it has rested for as long as its pauses so far make it worth to
 *               wait: idle_min_ns at first, twice as much (up to idle_ns) each time that it came
 *               back sooner than a hand-over and one back take, less again each time that it did not.
 *   Steps       A turn that would end shortly after a program has waited for all of its work ends there, and one
 *               that would end within a step goes on to its end (steps.h), of tokens too: then the
 *               lead over the GPU, which a program loses with its turn, is lost to nobody. Not for one who was
 *               away and comes back, nor for one of a higher priority.
 *   Charge      What a tenant is charged is what its cap and its virtual time count. Alone: the time
 *               with work in flight. Contended: the wall time from its first work under the lease
 *               (start_grace_ns after GO at the latest) to the end of its drain, whether or not it
 *               reports to be busy; and 2 x depth_ns more when it shows no use of the lease at all:
 *               saying "idle" gains next to nothing. While several run at once each is
 *               charged its part of the time. The tenant's own busy_ns settles what sampling can't
 *               see (the start between two polls, the delay of its busy flag), and no more: the
 *               charge stays between the wall time and the own samples less one poll and
 *               report_lag_ns. What the GPU itself needs to change tenants (switch_ns) is nobody's.
 *   Cap         A token bucket: filled at limit x time, emptied by the charge; may go into debt, which
 *               later time pays; holds at most limit x window for who waits, for who rests
 *               limit x idle_window, for who is absent a lease's worth.
 *   Weight      The guarantee; those without one share what the guarantees of all tenants leave of
 *               100, at least 1 each. Guarantees that sum over 100 are scaled down to that: each is
 *               cores x 100 / sum for as long as that is so. Caps stay.
 *   Priority    A tenant that has demand, outranks the holder and has budget takes the lease at once:
 *               CLOSING goes out without regard to min_lease_ns, so that it runs after the kernels
 *               in flight. The budget is a token bucket, filled at the guarantee x urgent_margin, or
 *               as much less as all guarantees in sum need (without a guarantee: at an equal part of
 *               the rest, 1 % at least and urgent_default_pct at most). It holds urgent_window_ns of
 *               that and is emptied by every charge while others want the GPU; so nobody's guarantee
 *               is touched for longer than a window. A lease pushed for ends for a higher priority
 *               (or an equal one whose turn it is), by idleness, and when the budget is overdrawn by
 *               urgent_slice_ns: then, and without budget, its tenant competes like everyone. Whoever
 *               was interrupted comes next, for the rest of its turn, and is charged what it ran. Tokens of a cap count as elsewhere, but for the same overdraft. Priority gives
 *               no share: beyond this it decides ties only. A tenant that is outranked by one that
 *               has worked already does not run free: free run has more in flight than someone in a
 *               hurry should find.
 *   Return      A tenant that comes back (from idleness, or to having tokens) starts at the least
 *               virtual time of those that compete, less one quantum of its own at most: not with
 *               years of credit, but in time to get its share in spite of short pauses. Debt is kept,
 *               up to debt_max_ns.
 *
 *   Space       Tenants of one space group run at the same time, and are one tenant to all that is said
 *               above: it has the sum of their guarantees, is charged the wall time of its leases, and
 *               has no cap. Each member is charged the SM-time that it begins (predicted, since wall time
 *               overlaps), and has its own cap on that. While several are at work they are PACED:
 *               each launch pays its SM-time of what is granted (space.h). One that is alone in its
 *               group, and has no cap, is as its group is: GO, or FREE, and charged the time with
 *               work in flight.
 *
 *   Gang        A tenant with work on several devices gets its turns on all at the same time: gang.h.
 *
 *   Looks       How soon to step again is the arbiter's to say: few looks where tenants ring (see
 *               arbiter_observation), many where they don't. Whom that makes late pays: the time is
 *               its own.
 *
 *   Need        Work that has outlived its drain, of a tenant that waits at the gate, may be waiting for
 *               the very launch that is held there (a host function for a lock, a kernel for a kernel).
 *               It is charged as if it ran, and could so never again have the tokens or the turn for
 *               that launch. So such a tenant gets min_lease_ns each need_ns, whatever its account says.
 *
 * Time jumps (the daemon was stopped): a step counts max_step_ns at most, for tokens and charges.
 */
#ifndef ALLOT_POLICY_LEASE_ARBITER_H
#define ALLOT_POLICY_LEASE_ARBITER_H

#include <stdbool.h>
#include <stdint.h>

#include "policy/gang/gang.h"
#include "policy/lease/arbiter_types.h"

/* 5 to 50 ms quantum (measured: docs/decisions/turn-lengths.md), 1 ms idle, 10 to 100 ms drain. */
struct arbiter_config arbiter_default_config(void);

struct arbiter;

/* NULL when out of memory. `config` is copied; times of zero are legal, if unwise. */
struct arbiter *arbiter_new(const struct arbiter_config *config);
struct arbiter *arbiter_free(struct arbiter *arbiter); /* NULL is fine; returns NULL */

/*
 * Adds a tenant at time now_ns and returns its index (0 <= index < ARBITER_MAX_TENANTS), which stays
 * its own until it is removed; -ENOSPC when full; -EINVAL for a share out of range.
 */
int arbiter_add(struct arbiter *arbiter, uint64_t now_ns, struct arbiter_share share);
/* Here and below an index that is not in use is ignored (-EINVAL where there is a result). */
void arbiter_remove(struct arbiter *arbiter, int tenant);
/* Changes a share from now on; the account is kept. -EINVAL for a share out of range. */
int arbiter_set_share(struct arbiter *arbiter, int tenant, struct arbiter_share share);
/*
 * Changes the cap alone, from now on: tokens are filled up to now at the old one, weight and virtual
 * time stay as they are. -EINVAL for a limit out of range, or below the tenant's guarantee.
 */
int arbiter_set_limit(struct arbiter *arbiter, int tenant, double limit_pct);
/* A paused tenant gets no lease, however long it waits. */
void arbiter_set_paused(struct arbiter *arbiter, int tenant, bool paused);

/*
 * Makes it share space with all tenants of that group, which is a number of the caller's; 0: with none, as at
 * first. Its processes can use part_pct of the card's SMs at most, which is as much as its cap or more, as SMs are
 * whole. It loses a lease that it has, and keeps its account. -EINVAL under another policy than leases,
 * -ENOSPC where there is no room for another group.
 */
int arbiter_set_space_group(struct arbiter *arbiter, int tenant, uint32_t group, double part_pct);

/* What was seen of a tenant; holds until the next observation. */
void arbiter_observe(struct arbiter *arbiter, int tenant, const struct arbiter_observation *seen);

/*
 * Decides for time now_ns (not before the last step's). Returns when to step again at the latest;
 * stepping sooner is always fine. Afterwards arbiter_state() tells what each tenant may do.
 */
uint64_t arbiter_step(struct arbiter *arbiter, uint64_t now_ns);

enum lease_state arbiter_state(const struct arbiter *arbiter, int tenant);
struct arbiter_account arbiter_account(const struct arbiter *arbiter, int tenant);
struct arbiter_pace arbiter_pace(const struct arbiter *arbiter, int tenant);
enum arbiter_mode arbiter_mode(const struct arbiter *arbiter);
/* Tokens granted under LEASE_PACED so far. It is taken back where too much was granted to a member of a space group. */
uint64_t arbiter_granted(const struct arbiter *arbiter, int tenant);
/* The quantum in force, and what a hand-over costs by what was measured: both in nanoseconds. */
uint64_t arbiter_quantum_ns(const struct arbiter *arbiter);
uint64_t arbiter_handover_ns(const struct arbiter *arbiter);
/* A tenant's part on this device in a gang (gang.h): what to tell the others of it after a step. */
struct gang_report arbiter_gang_report(const struct arbiter *arbiter, int tenant);
/* What was decided with the others. True when it is news: then the next step should come at once. */
bool arbiter_set_gang(struct arbiter *arbiter, int tenant, struct gang_word word);
/*
 * Who has the lease, in GO or in CLOSING until drained; -1: no one, and always in free run. Of a space group a
 * number that is nobody's.
 */
int arbiter_holder(const struct arbiter *arbiter);
/* Whether that is the tenant, or its space group. */
bool arbiter_has_lease(const struct arbiter *arbiter, int tenant);
/*
 * How much work it may have in flight under a lease, in nanoseconds: depth_ns, or what that is beside a gang, or a step where
 * that is worth it.
 */
uint64_t arbiter_depth_ns(const struct arbiter *arbiter, int tenant);
/* The length of a step of its program (steps.h), as charged, in nanoseconds; 0: not known. */
uint64_t arbiter_step_ns(const struct arbiter *arbiter, int tenant);
/* What it should tell of its steps (steps.h): under leases, that the next ends its lease; sliced, when each begins and ends. */
enum region_rest arbiter_wants_rest(const struct arbiter *arbiter, int tenant);
/* Of the lease that was closed last, or is being closed. */
struct arbiter_lease_end arbiter_last_end(const struct arbiter *arbiter);
/* How long a lease of it may be idle at present, in nanoseconds. */
uint64_t arbiter_patience_ns(const struct arbiter *arbiter, int tenant);
/* Some of arbiter_account()'s fields, for who asks at each step. */
uint64_t arbiter_leases(const struct arbiter *arbiter, int tenant);
uint64_t arbiter_charged_ns(const struct arbiter *arbiter, int tenant);
bool arbiter_is_active(const struct arbiter *arbiter, int tenant);
bool arbiter_is_draining(const struct arbiter *arbiter, int tenant);

#endif
