/*
 * The arbiter decides which tenant may run on one device, and when. Pure policy: no I/O, no clock, no threads. The daemon and
 * the simulations in tests/unit call the same code:
 *
 *     feed what was observed now  ->  arbiter_step()  ->  a lease state per tenant, and when to call
 *                                                         again at the latest
 *
 * The caller owns the arbiter and frees it; no pointer into it outlives the next call. One caller at a time. Times are
 * nanoseconds of any monotonic clock. One arbiter_step() counts max_step_ns at most, so no tenant is charged for more if the
 * daemon was stopped for longer.
 *
 * Terms:
 *   lease          the right of one tenant to run on the device
 *   holder         the tenant that has the lease
 *   quantum        the length of a lease
 *   charge         the GPU time that a tenant pays for; caps and virtual time count the charge
 *   virtual time   charge / weight: the tenant with the least comes next
 *   tokens         the unused part of a capped tenant's time: a token bucket
 *   state          permission of a tenant (enum lease_state, abi/shm/region.h): STOP and CLOSING: launch nothing; GO: launch
 *                  up to a limit of in-flight work; FREE: launch without turns; PACED: pay tokens for each launch
 *   drain          the time from CLOSING, with which a lease ends, until the holder's in-flight work has ended
 *   demand         in-flight work, or a launch that waits at the gate
 *   active         (a tenant) has demand or work, or had some less than free_after_ns ago; if paused or stopped: has work
 *   idle           has neither demand nor work now; an idle tenant may still be active
 *   absent         not active: idle for free_after_ns, or idle and paused or stopped
 *   doorbell       a wake-up that a tenant's library sends to the caller, for example when its work ends
 *
 * A device has one of three policies (enum arbiter_policy). Leases are the default; the others exist for comparison:
 *
 *   lease      described below
 *   token      KubeShare's policy (token.c): one holder has a token of fixed length. Limits and guarantees apply to the use in
 *              a sliding window, which includes work that ran past the token's end.
 *   feedback   Algorithm 2 of Lu et al. (paced.c, feedback.h): all tenants run at the same time (PACED). Each launch
 *              pays tokens. A control law grants tokens by the difference between the target share and the measured share.
 *
 * The policy of leases (docs/internals/turns.md):
 *
 *   Free run    At most one tenant is active, and it has no cap: every uncapped tenant is FREE. An idle tenant is FREE too,
 *               so its first launch waits for no other tenant; the next step sees the launch and changes to leases. For the
 *               same reason an idle capped tenant with tokens is GO. Only a tenant that owes much time is held (debts.c).
 *   Leases      Several tenants are active, or the active one is capped: one tenant at a time has GO. Among the tenants with
 *               demand and tokens, the one whose quantum would end first in virtual time comes next. A lease ends when the
 *               quantum is over and another tenant would be chosen, when the tokens are used up, or when the holder has
 *               been idle for too long while another waits. After min_lease_ns a lease also ends for a tenant that returned:
 *               one that would have been chosen at the grant, or one that was absent and would be chosen now.
 *               CLOSING is sent before the end, earlier by the predicted in-flight work. The next GO comes when the holder's
 *               work is done, or at the drain deadline; after the deadline the holder pays for the overlap as well.
 *   Slices      Several tenants are active, without gang or space group, and at least one program has short steps (steps.h)
 *               with CPU work between them: all run at once, and the hardware slices. A tenant that is ahead of its weighted
 *               share, or above its cap, is held (sliced.c). With caps, this applies beside tenants without short steps only
 *               if these have a lower priority.
 *   Quantum     The measured time from grant to grant that no tenant pays for, divided by the part of device time that may go
 *               into hand-overs: switch_loss, plus a third of what the caps of the active tenants leave unused in sum. So
 *               low caps make turns short, and capped shares are exact even over 100 ms. A capped tenant gathers tokens for
 *               half a quantum, 10 ms at most. Beside a gang, turns are longer (turn_terms.h).
 *   Idleness    A holder that is idle loses the lease after its patience (patience.h): idle_min_ns at first, idle_ns at most.
 *   Steps       A turn that would end shortly after a sync point ends there, and a turn that would end within a step goes on
 *               to the step's end (steps.h). The program has no lead over the GPU at that moment, so none is lost.
 *               A tenant that returns from absence, or has a higher priority, does not wait for the end of a step.
 *   Charge      A tenant alone pays the time with in-flight work; under a cap also for short pauses after its steps. A
 *               contended tenant pays the wall time from the first work under the lease (start_grace_ns after GO at the
 *               latest) to the end of the drain, whether or not it reports busy. It pays 2 x depth_ns more if it shows no use
 *               of the lease, so a false "idle" gains next to nothing. In slices each tenant pays for its part of the time.
 *               The tenant's own busy_ns settles only the error of sampling: the charge is at most the wall time, and at
 *               least the sampled time less one poll and report_lag_ns. The time that the GPU needs to change tenants
 *               (switch_ns) is charged to no tenant.
 *   Cap         A cap is a token bucket, filled at limit x time and emptied by the charge. The bucket may go into debt, which
 *               later time pays. It holds at most limit x window for a tenant that waits. It holds limit x idle_window for
 *               an idle tenant, or what its next lease needs, and a lease's worth for an absent tenant.
 *   Obedience   An honest library begins no work in STOP and CLOSING. But a thread that passed the gate before may be late, and
 *               so may the report of its launch. So a begin counts only later than drain_max_ns after the end of the lease. The
 *               charge from one such begin to the next is unauthorized. The charge after the latest one is not, because that
 *               may be one long kernel. Nor is the charge for work from before the lease's end, however long it takes.
 *   Weight      The weight is the guarantee. Tenants without one share what the guarantees leave of 100, at least 1 each.
 *               Guarantees that sum to more than 100 are scaled down to 100 while this is so. Caps are not scaled.
 *   Priority    A tenant with demand that outranks the holder, and has budget, takes the lease at once, without regard to
 *               min_lease_ns. The budget is a token bucket, filled at the guarantee x urgent_margin, or less if all budgets
 *               would sum to more than the GPU. (Without a guarantee: at an equal part of what is left, at least 1 %, at most
 *               urgent_default_pct.) The bucket holds what urgent_window_ns fill in. Every charge empties it while others want
 *               the GPU, so they miss their guarantees for one window at most. Such a lease ends for a higher priority, for an
 *               equal priority whose turn has come, by idleness, and when the budget is overdrawn by urgent_slice_ns. An
 *               interrupted tenant comes next, for the rest of its turn. Beyond this, priority decides ties only. A tenant does
 *               not run free while a tenant that has worked before outranks it: in free run, more is in flight.
 *   Return      A tenant that wants the GPU again after idleness, or has tokens again, starts at the least virtual time of the
 *               tenants that compete, less at most one quantum of its own. Debt is kept, up to debt_max_ns. The debt of a
 *               removed tenant passes to the new tenants of its owner, until the share would have paid for it.
 *   Space       The tenants of one space group run at the same time and are one tenant to all of the above. The group has the
 *               sum of their guarantees, pays the wall time of its leases, and has no cap. A member with a cap can use only
 *               that part of the SMs, and pays that part of its time with in-flight work. A member without a cap pays for
 *               that time if it works alone, else for its work that ended. Members that work at the same time are PACED (each
 *               launch pays tokens: space.h) if one has a guarantee and their caps sum to more than the GPU. Otherwise a
 *               member has the group's state, GO or FREE; but GO, not FREE, while its work must be measured.
 *   Gang        A tenant with work on several devices gets its turns on all of them at the same time (device_gang.h).
 *   Polls       The arbiter says when to step again at the latest: rarely if tenants ring their doorbell
 *               (arbiter_observation), often if they do not. The time lost by a late poll is the tenant's own.
 *   Need        If a tenant waits at the gate and its in-flight work outlives the drain, this work may wait for the very
 *               launch that is held (a host function waits for a lock, or a kernel for another kernel). This work is charged
 *               as if it ran, so the tenant might never again have tokens or a turn. One such tenant gets min_lease_ns every
 *               need_ns, whatever its account says.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "policy/gang/device_gang.h"
#include "policy/lease/arbiter_types.h"
#include "policy/safety/time_policy.h"

/* Defaults: quantum 5 to 50 ms (docs/decisions/turn-lengths.md), idle time 1 ms, drain 10 to 100 ms. */
struct arbiter_config arbiter_default_config(void);

struct arbiter;

/* Copies `config`, where times of zero are legal. NULL if out of memory. */
struct arbiter *arbiter_new(const struct arbiter_config *config);
struct arbiter *arbiter_free(struct arbiter *arbiter); /* NULL is allowed; returns NULL */

/* Returns an index, valid until the tenant's removal; -ENOSPC if no index is free; -EINVAL for a share out of range. */
int arbiter_add(struct arbiter *arbiter, uint64_t now_ns, struct arbiter_share share);
/*
 * Sets the owner of a new tenant; call it once, after arbiter_add(). If removed tenants of the same owner had more than their
 * share, the new tenant waits until its share has paid for the excess. Otherwise a program could get a new turn at once by
 * making its tenant anew. The new tenant also begins with their unpaid time (arbiter_add_reading()). Owner 0 means no owner,
 * as without this call.
 */
void arbiter_set_owner(struct arbiter *arbiter, int tenant, uint64_t owner);
/* arbiter_remove() and the functions below ignore an unused index; functions with an int result return -EINVAL. */
void arbiter_remove(struct arbiter *arbiter, int tenant);
/* The tenant's account of GPU time goes on. Returns -EINVAL for a share out of range. */
int arbiter_set_share(struct arbiter *arbiter, int tenant, struct arbiter_share share);
/* Tokens for the time until now are filled at the old cap. -EINVAL for a limit out of range or below the guarantee. */
int arbiter_set_limit(struct arbiter *arbiter, int tenant, double limit_pct);
/* A paused tenant gets no lease, however long it waits. */
void arbiter_set_paused(struct arbiter *arbiter, int tenant, bool paused);

/*
 * Puts the tenant into a space group: tenants that run at the same time (space.h). `group` is a number that the caller chooses;
 * 0: no group, as for a new tenant. part_pct is the percentage of the SMs that the tenant's processes can use: its cap, rounded
 * to pairs of SMs. The tenant loses its lease and keeps its account. Returns -EINVAL unless the policy is leases, -ENOSPC if a
 * new group finds no free index.
 */
int arbiter_set_space_group(struct arbiter *arbiter, int tenant, uint32_t group, double part_pct);

/* Stores an observation of a tenant. It holds until the tenant's next observation. */
void arbiter_observe(struct arbiter *arbiter, int tenant, const struct arbiter_observation *seen);

/*
 * Compares the tenant's charge with the driver's samples (time_policy.h). Returns true if the tenant is in violation. *ret is
 * its unpaid time after this reading.
 */
bool arbiter_add_reading(struct arbiter *arbiter, int tenant, const struct time_reading *reading,
			 struct time_account *ret);
/* How long the tenant's owner shall get no new tenant, because one of its tenants was in violation; 0 for an unused index. */
uint64_t arbiter_refused_ns(const struct arbiter *arbiter, int tenant);

/* now_ns must not be less than in the last step. Returns the latest time for the next step; an earlier one is allowed. */
uint64_t arbiter_step(struct arbiter *arbiter, uint64_t now_ns);

enum lease_state arbiter_state(const struct arbiter *arbiter, int tenant);
struct arbiter_account arbiter_account(const struct arbiter *arbiter, int tenant);
struct arbiter_pace arbiter_pace(const struct arbiter *arbiter, int tenant);
enum arbiter_mode arbiter_mode(const struct arbiter *arbiter);
/* Tokens under LEASE_PACED so far. The value may fall, if a member of a space group was granted too much. */
uint64_t arbiter_granted(const struct arbiter *arbiter, int tenant);
uint64_t arbiter_quantum_ns(const struct arbiter *arbiter);
uint64_t arbiter_handover_ns(const struct arbiter *arbiter);
/* For gang_set_report() (device_gang.h). Call after a step. */
struct gang_report arbiter_gang_report(const struct arbiter *arbiter, int tenant);
/* Stores a command of gang_command(). Returns true if the order or its time changed: then call arbiter_step() soon. */
bool arbiter_set_gang(struct arbiter *arbiter, int tenant, struct gang_command command);
/* The tenant in GO or CLOSING; -1 if there is none. If a space group has the lease, an index that no tenant has. */
int arbiter_holder(const struct arbiter *arbiter);
/* True if the tenant or its space group has the lease. */
bool arbiter_has_lease(const struct arbiter *arbiter, int tenant);
/*
 * Returns how much work may be in flight under a lease: depth_ns, more beside a gang, or twice a step's length if the program
 * profits from that (steps.h). A capped tenant that is alone gets at least free_depth_ns, if its steps are known or it gathers
 * tokens for long leases (cap_slice_most_ns). A member of a space group gets group_depth_ns().
 */
uint64_t arbiter_depth_ns(const struct arbiter *arbiter, int tenant, uint64_t free_depth_ns);
/* The GPU time that a step of the tenant's program is charged on average (steps.h); 0 if unknown. */
uint64_t arbiter_step_ns(const struct arbiter *arbiter, int tenant);
/*
 * Returns which sync points the library should report (steps.h). Under leases: the next one, if it ends the lease. In slices:
 * each step's begin and end, if the program's steps are short.
 */
enum region_sync_point arbiter_wants_sync_point(const struct arbiter *arbiter, int tenant);
/* The reason for the end of the latest lease that has ended or is being closed. */
struct arbiter_lease_end arbiter_last_end(const struct arbiter *arbiter);
uint64_t arbiter_patience_ns(const struct arbiter *arbiter, int tenant);
/* Each returns one member of arbiter_account(), and is cheap enough to call at each arbiter_step(). */
uint64_t arbiter_leases(const struct arbiter *arbiter, int tenant);
uint64_t arbiter_charged_ns(const struct arbiter *arbiter, int tenant);
uint64_t arbiter_unauthorized_ns(const struct arbiter *arbiter, int tenant);
bool arbiter_is_active(const struct arbiter *arbiter, int tenant);
bool arbiter_is_draining(const struct arbiter *arbiter, int tenant);
