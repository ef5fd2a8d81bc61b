#include "daemon/arbitrate/step_window.h"

#include "base/clock.h"

#define KEEP_NS (5 * NSEC_PER_SEC)
#define KEEP_FEW_NS (30 * NSEC_PER_SEC)
#define FEW 20

static uint64_t passed(uint64_t from, uint64_t to)
{
	return to > from ? to - from : 0;
}

static uint64_t read(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

void step_window_init(struct step_window *w, uint64_t now_ns)
{
	*w = (struct step_window){ .older.at_ns = now_ns, .newer.at_ns = now_ns };
}

void step_window_read(struct step_window *w, const struct step_counts *counts, uint64_t now_ns)
{
	uint64_t age_ns = passed(w->newer.at_ns, now_ns);
	uint64_t count = read(&counts->count);

	if (age_ns < KEEP_NS || (age_ns < KEEP_FEW_NS && passed(w->older.count, count) < FEW))
		return;
	w->older = w->newer;
	w->newer.at_ns = now_ns;
	w->newer.count = count;
	for (unsigned i = 0; i < STEP_BUCKETS; i++)
		w->newer.bucket[i] = read(&counts->bucket[i]);
}

/* The length of step number `rank` if sorted by length. Steps are taken as spread evenly within a bucket. */
static uint64_t length_ns(const struct step_moment *since, const struct step_counts *counts,
			  double rank)
{
	double before = 0;

	for (unsigned i = 0; i < STEP_BUCKETS; i++) {
		double here = (double)passed(since->bucket[i], read(&counts->bucket[i]));
		uint64_t from_ns = step_bucket_from_ns(i);

		if (here > 0 && before + here >= rank) {
			double wide_ns = (double)(step_bucket_from_ns(i + 1) - from_ns);

			return from_ns + (uint64_t)(wide_ns * (rank - before) / here);
		}
		before += here;
	}
	return step_bucket_from_ns(STEP_BUCKETS);
}

struct step_figures step_window_figures(struct step_window *w, const struct step_counts *counts,
					uint64_t now_ns)
{
	struct step_figures f = { .count = read(&counts->count), .sum_ns = read(&counts->sum_ns) };
	double steps = 0;

	step_window_read(w, counts, now_ns);
	if (passed(w->older.count, f.count) == 0 || now_ns <= w->older.at_ns)
		return f;
	for (unsigned i = 0; i < STEP_BUCKETS; i++)
		steps += (double)passed(w->older.bucket[i], read(&counts->bucket[i]));
	f.is_known = steps > 0;
	f.per_second = steps * 1e9 / (double)(now_ns - w->older.at_ns);
	f.p50_ns = length_ns(&w->older, counts, steps * 0.5);
	f.p99_ns = length_ns(&w->older, counts, steps * 0.99);
	return f;
}
