#include "policy/memory/promise.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>

#include "base/text.h"

#define MIB (UINT64_C(1) << 20)
#define PCT_SLACK 1e-6 /* tolerance for sums of floating-point shares */

uint64_t promise_unpromised_bytes(const struct promise_card *card)
{
	uint64_t taken = card->promised_bytes + card->granted_bytes + card->kept_bytes +
			 card->movable_bytes;
	return card->memory_bytes > taken ? card->memory_bytes - taken : 0;
}

double promise_user_most_pct(const double *promised_pct, size_t users)
{
	double sum = 0, most = INFINITY;
	for (size_t i = 0; i < users; i++)
		sum += promised_pct[i];
	if (sum <= 100 + PCT_SLACK)
		return INFINITY;
	/*
	 * Users below `most` keep all. The others share the rest of the GPU equally, which raises `most`, until it is stable.
	 */
	for (size_t round = 0; round <= users; round++) {
		double left = 100, last = most;
		size_t others = 0;
		for (size_t i = 0; i < users; i++) {
			bool has_all = round > 0 && promised_pct[i] <= last;
			left -= has_all ? promised_pct[i] : 0;
			others += !has_all;
		}
		if (others == 0)
			break;
		most = left / (double)others;
		if (most <= last && most >= last)
			break;
	}
	return most;
}

double promise_in_force_pct(double user_most_pct, double user_promised_pct, double cores_pct)
{
	return user_promised_pct > user_most_pct ? cores_pct * user_most_pct / user_promised_pct
						 : cores_pct;
}

static int check_share(const struct promise_card *card, const struct promise *p, struct error *err)
{
	unsigned i = card->index;
	if (!isfinite(p->cores_pct) || p->cores_pct < 0 || p->cores_pct > 100)
		return error_set(err, EINVAL,
				 "GPU %u: cores_pct (--cores) %g: must be from 0 to 100", i,
				 p->cores_pct);
	if (!isfinite(p->limit_pct) || p->limit_pct <= 0 || p->limit_pct > 100)
		return error_set(err, EINVAL,
				 "GPU %u: cores_limit_pct (--cores-limit) %g: must be above 0, at "
				 "most 100",
				 i, p->limit_pct);
	if (p->limit_pct < p->cores_pct)
		return error_set(err, EINVAL,
				 "GPU %u: cores_limit_pct (--cores-limit) %g is less than cores_pct "
				 "(--cores) %g: must be at least as much",
				 i, p->limit_pct, p->cores_pct);
	double left = 100 - card->promised_cores_pct;
	if (p->cores_pct > left + PCT_SLACK && !card->may_overcommit)
		return error_set(err, ENOSPC,
				 "GPU %u: %g %% of its time cannot be guaranteed, because %g %% are "
				 "guaranteed to other tenants: at most %g %% is possible",
				 i, p->cores_pct, card->promised_cores_pct, left > 0 ? left : 0);
	return 0;
}

static int check_left(const struct promise_card *card, uint64_t want, struct error *err)
{
	unsigned i = card->index;
	/* Movable tenants take turns in the same memory, so a movable tenant's request need not fit beside their quotas. */
	uint64_t granted = card->granted_bytes + card->kept_bytes +
			   (card->is_movable ? 0 : card->movable_bytes);
	uint64_t taken = card->promised_bytes + card->unpromised_held_bytes + granted;
	uint64_t left = taken < card->memory_bytes ? card->memory_bytes - taken : 0;
	if (want <= left)
		return 0;
	return error_set(
		err, ENOSPC,
		"GPU %u: memory of %s does not fit: at most %s (%" PRIu64
		"MiB) is unpromised. Of the GPU's %s, %s are promised to others, %s are held by "
		"tenants without a quota, and %s are granted to tenants with on_full wait "
		"or swap",
		i, amount(want).text, amount(left).text, left / MIB,
		amount(card->memory_bytes).text, amount(card->promised_bytes).text,
		amount(card->unpromised_held_bytes).text, amount(granted).text);
}

static int check_given_memory(const struct promise_card *card, uint64_t want, uint64_t held,
			      bool waits, struct error *err)
{
	unsigned i = card->index;
	if (want == 0)
		return error_set(err, EINVAL, "GPU %u: memory_bytes (--memory) 0: must be above 0",
				 i);
	if (want > card->memory_bytes)
		return error_set(err, ENOSPC,
				 "GPU %u: memory of %s is more than the GPU has: at most %s (%" PRIu64
				 "MiB) is possible",
				 i, amount(want).text, amount(card->memory_bytes).text,
				 card->memory_bytes / MIB);
	int r = waits ? 0 : check_left(card, want, err);
	if (r < 0)
		return r;
	if (want < held)
		return error_set(err, EBUSY,
				 "GPU %u: memory of %s is less than the tenant holds: at least %s "
				 "(%" PRIu64 "MiB) is needed",
				 i, amount(want).text, amount(held).text, (held + MIB - 1) / MIB);
	return 0;
}

static int check_unpromised(const struct promise_card *card, uint64_t held, struct error *err)
{
	uint64_t unpromised = promise_unpromised_bytes(card);
	if (unpromised == 0)
		return error_set(
			err, ENOSPC,
			"GPU %u: all of its memory (%s) is promised to others: none is left for a "
			"tenant without a memory quota. Choose another GPU, or ask for a quota "
			"with on_full 'wait'",
			card->index, amount(card->memory_bytes).text);
	if (unpromised < held)
		return error_set(
			err, EBUSY,
			"GPU %u: only %s is not promised to others. A tenant without a quota may hold "
			"no more than that, but this tenant holds %s: free memory, or set a quota",
			card->index, amount(unpromised).text, amount(held).text);
	return 0;
}

static int check_waiting(const struct promise_card *card, const struct promise *p,
			 const struct promise_request *request, struct error *err)
{
	unsigned i = card->index;
	if (!request->waits)
		return request->has_reserve
			       ? error_set(err, EINVAL,
					   "GPU %u: reserve_bytes (--reserve): possible only "
					   "with on_full 'wait' (--on-full wait): leave it out",
					   i)
			       : 0;
	if (!p->memory_given)
		return error_set(err, EINVAL,
				 "GPU %u: memory_bytes (--memory): missing: on_full 'wait' needs "
				 "the amount for which the tenant may wait",
				 i);
	if (request->has_reserve &&
	    (request->reserve_bytes == 0 || request->reserve_bytes > p->quota_bytes))
		return error_set(err, EINVAL,
				 "GPU %u: reserve_bytes (--reserve) %" PRIu64
				 ": must be above 0, at most memory_bytes (--memory) %" PRIu64
				 " (%s)",
				 i, request->reserve_bytes, p->quota_bytes,
				 amount(p->quota_bytes).text);
	return 0;
}

int promise_decide(const struct promise_card *card, const struct promise *now, uint64_t held_bytes,
		   const struct promise_request *request, struct promise *ret, struct error *err)
{
	struct promise p = now ? *now : (struct promise){ .limit_pct = 100 };

	if (request->has_cores)
		p.cores_pct = request->cores_pct;
	if (request->has_limit) {
		p.limit_given = true;
		p.limit_pct = request->limit_pct;
	}
	if (!p.limit_given)
		p.limit_pct = p.cores_pct > 0 ? p.cores_pct : 100;
	if (request->has_memory) {
		p.memory_given = !request->memory_is_unpromised;
		p.quota_bytes = request->memory_bytes;
	}
	if (request->has_reserve)
		p.reserve_bytes = request->reserve_bytes;

	int r = check_share(card, &p, err);
	if (r >= 0)
		r = check_waiting(card, &p, request, err);
	if (r < 0)
		return r;
	if (!p.memory_given) {
		p.quota_bytes = promise_unpromised_bytes(card);
		r = !now || request->has_memory ? check_unpromised(card, held_bytes, err) : 0;
	} else if (!now || request->has_memory) {
		r = check_given_memory(card, p.quota_bytes, held_bytes, request->waits, err);
	}
	if (r < 0)
		return r;
	/* The quota may have been lowered below the reservation. */
	if (p.reserve_bytes > p.quota_bytes)
		p.reserve_bytes = p.quota_bytes;
	*ret = p;
	return 0;
}
