/*
 * The arbiter decides who may run on one device, and when. Pure policy: no I/O, no clock, no threads. The daemon and the
 * simulations in tests/unit call the same code:
 *
 *     feed what was observed now  ->  arbiter_step()  ->  a lease state per tenant, and when to call
 *                                                         again at the latest
 *
 * The caller owns the arbiter and frees it; no pointer into it outlives the next call. One caller at a time. Times are
 * nanoseconds of any monotonic clock. A step counts max_step_ns at most, so a stopped daemon charges nobody for the gap.
 *
 * Nouns:
 *   lease          the right of one tenant to run on the device
 *   holder         the tenant that has the lease
 *   quantum        the length of a lease
 *   charge         the GPU time that a tenant pays for; caps and virtual time count it
 *   virtual time   charge / weight: the tenant with the least comes next
 *   tokens         what is left of a capped tenant's time: a token bucket
 *   drain          the time from CLOSING until the holder's in-flight work has ended
 *   demand         in-flight work, or a launch that waits at the gate
 *
 * A device has one of three policies (enum arbiter_policy). Leases are the default; the others are there to compare with:
 *
 *   lease      below
 *   token      KubeShare's (token.c): a token of fixed length for one holder; a sliding window counts limits and
 *              guarantees, including what ran past the token. It predicts nothing and ends nothing early.
 *   feedback   Algorithm 2 of Lu et al. (paced.c, feedback.h): all tenants run at the same time (PACED). Each launch
 *              pays tokens; a control law grants them by the difference between the meant and the measured share.
 *
 * The policy of leases:
 *
 *   Free run    At most one tenant is active, and it has no cap: every uncapped tenant is FREE. An idle tenant is FREE too,
 *               so that its first launch waits for nobody; the next step sees it and goes to leases. For the same reason
 *               an idle capped tenant with tokens is GO while the mode is IDLE or FREE.
 *   Leases      Several tenants are active, or the active one is capped: one tenant at a time has GO. Next comes the tenant
 *               whose quantum would end first in virtual time, among those with demand and tokens. A lease ends when the
 *               quantum is over and another tenant would be chosen, when the tokens are used up, or when the holder has
 *               been idle for too long while another waits. After min_lease_ns it also ends for a tenant that came back and
 *               would have been chosen instead (after an absence of free_after_ns: that would be chosen now).
 *               CLOSING is sent ahead of the end by the predicted in-flight work. The next GO comes when the holder's work
 *               is done, or at the drain deadline; the holder then pays for the overlap as well.
 *   Slices      Several tenants are active, without gang or space group, and at least one program has short steps (steps.h)
 *               with CPU work between them: all run at once, and the hardware slices. Each tenant's due by weight and
 *               what it had are counted; a tenant that is ahead, or above its cap, is held (sliced.c). With caps, this
 *               applies beside tenants without short steps only if these have a lower priority.
 *   Quantum     As short as the cost of a hand-over allows: the measured time from grant to grant that nobody pays for, over
 *               the part of device time that may go into it. That part is switch_loss, and a third of what the caps of
 *               the active tenants leave unused in sum, so that capped shares hold over 100 ms too. A capped tenant
 *               gathers tokens for half a quantum, 10 ms at most. Beside a gang turns are longer (turn_terms.h).
 *   Idleness    A holder loses the lease after it has been idle for as long as its past pauses make waiting worthwhile:
 *               idle_min_ns at first; doubled, up to idle_ns, each time it came back sooner than two hand-overs take;
 *               shortened each time it did not.
 *   Steps       A turn that would end shortly after a sync point ends there, and one that would end within a step goes on to
 *               the step's end (steps.h). The program's lead over the GPU ends with its turn, and is lost to nobody then.
 *               This does not hold against a tenant that comes back from absence, or has a higher priority.
 *   Charge      Alone: the time with in-flight work. Contended: the wall time from the first work under the lease
 *               (start_grace_ns after GO at the latest) to the end of the drain, whether or not the tenant reports busy;
 *               and 2 x depth_ns more if it shows no use of the lease, so that a false "idle" gains next to nothing.
 *               In slices each tenant pays for its part of the time. The tenant's own busy_ns settles only what sampling
 *               cannot see; the charge stays between the wall time and the samples less one poll and report_lag_ns. What
 *               the GPU needs to change tenants (switch_ns) is charged to nobody.
 *   Cap         A token bucket: filled at limit x time, emptied by the charge. It may go into debt, which later time pays.
 *               It holds at most limit x window for a tenant that waits, limit x idle_window for one that is idle, and a
 *               lease's worth for one that is absent.
 *   Weight      The guarantee. Tenants without one share what the guarantees leave of 100, at least 1 each. Guarantees that
 *               sum to more than 100 are scaled down to that for as long as this is so. Caps stay.
 *   Priority    A tenant with demand that outranks the holder, and has budget, takes the lease at once: CLOSING goes out
 *               without regard to min_lease_ns. The budget is a token bucket, filled at the guarantee x urgent_margin,
 *               or less where all guarantees in sum need that. (Without a guarantee: at an equal part of what is left, at
 *               least 1 %, at most urgent_default_pct.) It holds urgent_window_ns of that, and every charge empties
 *               it while others want the GPU, so no guarantee is touched for longer than a window. Such a lease ends
 *               for a higher priority, for an equal one whose turn it is, by idleness, and when the budget is overdrawn
 *               by urgent_slice_ns; then the tenant competes like every other. An interrupted tenant comes next, for what
 *               is left of its turn. Beyond this, priority decides ties only. A tenant that is outranked by one that has
 *               worked already does not run free: free run has too much in flight for a tenant in a hurry.
 *   Return      A tenant that comes back, from idleness or to having tokens, starts at the least virtual time of those that
 *               compete, less one quantum of its own at most. Debt is kept, up to debt_max_ns.
 *   Space       The tenants of one space group run at the same time and are one tenant to all of the above: it has the sum
 *               of their guarantees, pays the wall time of its leases, and has no cap. Each member pays the SM time that
 *               it begins (predicted), and has its own cap on that. While several are at work they are PACED: each launch
 *               pays its SM time from what is granted (space.h). A member that is alone in its group, and has no cap, is
 *               GO or FREE as its group is, and pays the time with in-flight work.
 *   Gang        A tenant with work on several devices gets its turns on all of them at the same time (gang.h).
 *   Looks       The arbiter says when to step again at the latest: rarely where tenants ring their doorbell
 *               (arbiter_observation), often where they do not. The time lost by a late look is the tenant's own.
 *   Need        Work that outlives its drain, of a tenant that waits at the gate, may wait for the very launch that is held
 *               (a host function for a lock, a kernel for a kernel). It is charged as if it ran, so the tenant might
 *               never again have tokens or a turn. Such a tenant gets min_lease_ns each need_ns, whatever its account says.
 */
#pragma once

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
 * The tenant that has the lease, in GO or in CLOSING until drained; -1: none, and always in free run. Of a space group, a
 * number that no tenant has.
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
enum region_sync_point arbiter_wants_sync_point(const struct arbiter *arbiter, int tenant);
/* Of the lease that was closed last, or is being closed. */
struct arbiter_lease_end arbiter_last_end(const struct arbiter *arbiter);
/* How long a lease of it may be idle at present, in nanoseconds. */
uint64_t arbiter_patience_ns(const struct arbiter *arbiter, int tenant);
/* Some of arbiter_account()'s fields, for a caller that asks at each step. */
uint64_t arbiter_leases(const struct arbiter *arbiter, int tenant);
uint64_t arbiter_charged_ns(const struct arbiter *arbiter, int tenant);
bool arbiter_is_active(const struct arbiter *arbiter, int tenant);
bool arbiter_is_draining(const struct arbiter *arbiter, int tenant);
