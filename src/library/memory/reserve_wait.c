#include "library/memory/reserve_wait.h"

#include "library/memory/ledger.h"
#include "library/state/bell.h"
#include "library/state/process_state.h"
#include "library/state/helper.h"
#include "library/sys/locks.h"
#include "library/sys/log.h"
#include "library/trace/trace_record.h"

/* These sleeps are short, so that a thread soon notices that the daemon is gone. */
#define NAP_NS (100 * NS_PER_MS)
/* How long a tenant that holds memory waits for an answer, which normally takes milliseconds. */
#define ANSWER_PATIENCE_NS (1 * NS_PER_S)

/* `want` is the request's place in the report. A new daemon brings a new report, and there the request is made again. */
struct request {
	struct region_want *want;
	uint32_t number;
	uint64_t granted_before;
	uint64_t asked_ns;
};

static struct region_want *want_of(int index)
{
	struct region_report *report = atomic_load(&process_state.report);

	return &report->want[atomic_load(&process_state.slot) - report->slot][index];
}

static uint64_t granted(int index)
{
	return atomic_load(&process_control_device(index)->memory_granted_bytes);
}

static bool fits_in(uint64_t limit, uint64_t used, uint64_t bytes)
{
	return bytes <= limit && used <= limit - bytes;
}

static void send_request(struct request *a, int index, uint64_t bytes, uint64_t now_ns)
{
	a->asked_ns = now_ns;
	a->want = want_of(index);
	a->granted_before = granted(index);
	atomic_store(&a->want->bytes, bytes);
	a->number = atomic_fetch_add(&a->want->ask, 1) + 1;
	bell_ring(index);
}

/* If the daemon has not answered yet, a doorbell tells it. */
static void cancel_request(const struct request *a, int index)
{
	if (!a->want || a->want != want_of(index))
		return;
	atomic_store(&a->want->bytes, 0);
	if (atomic_load(&a->want->answered) == a->number)
		return;
	atomic_fetch_add(&a->want->ask, 1);
	bell_ring(index);
}

static bool is_too_late(const struct request *a, uint64_t now_ns, uint64_t since_ns, bool is_holder)
{
	uint64_t most_ns = atomic_load_explicit(&atomic_load(&process_state.control)->memory_wait_ns,
						memory_order_relaxed);

	if (is_holder && a->want && now_ns - a->asked_ns > ANSWER_PATIENCE_NS)
		return true;
	return most_ns && now_ns - since_ns >= most_ns;
}

/* Returns true if the reservation is worth another try. The caller holds locks.memory_request. */
static bool wait_for_answer(int index, uint64_t bytes, uint64_t since_ns, struct request *a)
{
	for (;;) {
		const struct region_control_device *c = process_control_device(index);
		uint32_t change = atomic_load(&c->memory_grant_change);
		/* The daemon writes the grant first, so read the answer first. */
		bool is_answered = a->want && a->want == want_of(index) &&
				   atomic_load(&a->want->answered) == a->number;
		uint64_t limit = granted(index), used = ledger_used(index), now_ns = sys_now_ns();

		if (fits_in(limit, used, bytes))
			return true;
		if (!fits_in(ledger_quota(index), used, bytes))
			return false;
		/* An answer without a higher grant is a refusal. If another process used up a higher one, ask again. */
		if (is_answered && limit <= a->granted_before)
			return false;
		if (is_too_late(a, now_ns, since_ns, limit > 0))
			return false;
		if (is_answered || a->want != want_of(index))
			send_request(a, index, bytes, now_ns);
		sys_futex_wait(&c->memory_grant_change, change, NAP_NS, true);
	}
}

bool reserve_wait(int index, uint64_t bytes, struct reserve_wait *wait)
{
	struct request a = { 0 };

	if (index == REGION_HOST || bytes > ledger_quota(index))
		return false;
	if (!wait->has_waited_for_nvml) {
		wait->has_waited_for_nvml = true;
		if (ledger_wait_for_nvml(index))
			return true;
	}
	if (likely(!atomic_load_explicit(&atomic_load(&process_state.control)->memory_waits,
					 memory_order_relaxed)))
		return false;
	if (!wait->since_ns)
		wait->since_ns = sys_now_ns();
	/* Only the helper thread finds a restarted daemon. The first context starts it, but there may be no context yet. */
	helper_start();
	uint64_t begin = trace_begin();
	WITH_LOCK(&locks.memory_request[index]);
	log_debug("device %d: an allocation waits until the daemon grants the tenant %llu "
		  "bytes more (--on-full wait)",
		  index, (unsigned long long)bytes);
	bool is_worth_trying = wait_for_answer(index, bytes, wait->since_ns, &a);
	cancel_request(&a, index);
	trace_wait(TRACE_MEMORY_WAIT, index, begin, bytes, is_worth_trying ? 0 : ENOMEM);
	return is_worth_trying;
}
