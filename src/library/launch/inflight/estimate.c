#include "library/launch/inflight/estimate.h"

#define ENTRIES 4096    /* a power of two; the table takes 128 KiB */
#define PLACES 4        /* number of entries where a key may be stored */
#define FIRST_SAMPLES 4 /* samples_wanted of a new entry */
#define SAMPLES_AFTER_SURPRISE 2
#define SAMPLE_EVERY 64 /* while no samples are wanted, one launch in this many is timed */
/*
 * Timing a kernel takes two events, which cost the thread and the GPU microseconds. So while samples are wanted, only one in
 * SHORT_EVERY launches of a short kernel is timed. If several streams share the GPU, samples differ so much that more are
 * always wanted.
 */
#define SHORT_NS 200000
#define SHORT_EVERY 8
/*
 * A surprise is a sample far from the estimate. One key may stand for kernels of several lengths, and then surprises are
 * frequent. Because timing costs speed, each surprise after the first halves how often the key is timed, down to one launch in
 * SAMPLE_EVERY.
 */
#define SURPRISES_MOST 7
/*
 * While the program's other streams run, work may take up to this many times as long as alone. So stable_ns (estimate.h)
 * changes only if the estimate differs from it by more than this factor.
 */
#define STABLE_FACTOR 16

static struct estimate table[ENTRIES];
/* Mean of all estimates' stable_ns, weighted by launches, or 0. It stands in for the stable_ns of work that has none yet. */
static _Atomic uint32_t typical_ns;

static uint64_t mix(uint64_t h, uint64_t value)
{
	h = (h ^ value) * 0x9e3779b97f4a7c15ULL;
	return h ^ (h >> 32);
}

static uint64_t key_of(const struct work *w)
{
	uint64_t h = mix((uint64_t)w->kind + 1, (uint64_t)(uintptr_t)w->subject);

	if (w->kind == WORK_IS_COPY)
		h = mix(h, w->blocks ? 64U - (unsigned)__builtin_clzll(w->blocks) : 0);
	else if (w->kind == WORK_IS_KERNEL)
		h = mix(mix(h, w->blocks), w->threads);
	return h ? h : 1;
}

struct estimate *estimate_of(const struct work *work)
{
	uint64_t key = key_of(work);
	struct estimate *first = &table[key & (ENTRIES - PLACES)], *victim = first;

	for (struct estimate *e = first; e < first + PLACES; e++) {
		uint64_t there = atomic_load_explicit(&e->key, memory_order_relaxed);
		if (there == key)
			return e;
		if (!there) {
			victim = e;
			break;
		}
		if (atomic_load_explicit(&e->uses, memory_order_relaxed) <
		    atomic_load_explicit(&victim->uses, memory_order_relaxed))
			victim = e;
	}
	atomic_store_explicit(&victim->ns, 0, memory_order_relaxed);
	atomic_store_explicit(&victim->uses, 0, memory_order_relaxed);
	atomic_store_explicit(&victim->samples_wanted, FIRST_SAMPLES, memory_order_relaxed);
	atomic_store_explicit(&victim->last, 0, memory_order_relaxed);
	atomic_store_explicit(&victim->before, 0, memory_order_relaxed);
	atomic_store_explicit(&victim->stable_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&victim->surprises, 0, memory_order_relaxed);
	atomic_store_explicit(&victim->key, key, memory_order_relaxed);
	return victim;
}

bool estimate_wants_sample(struct estimate *estimate)
{
	uint32_t uses = atomic_fetch_add_explicit(&estimate->uses, 1, memory_order_relaxed);

	/*
	 * Only a completed sample reduces samples_wanted. A launch for which this function returns true may get no sample,
	 * because a stream can have only a few samples in progress (inflight_sample.h).
	 */
	if (!atomic_load_explicit(&estimate->samples_wanted, memory_order_relaxed))
		return uses % SAMPLE_EVERY == 0;
	uint64_t ns = atomic_load_explicit(&estimate->ns, memory_order_relaxed);
	uint32_t surprises = atomic_load_explicit(&estimate->surprises, memory_order_relaxed);
	uint32_t every = (ns >= SHORT_NS ? 1U : SHORT_EVERY) << (surprises ? surprises - 1 : 0);
	return !ns || uses % (every < SAMPLE_EVERY ? every : SAMPLE_EVERY) == 0;
}

bool estimate_wants_stable_sample(struct estimate *estimate)
{
	if (estimate_is_untried(estimate))
		return estimate_wants_sample(estimate);
	return atomic_fetch_add_explicit(&estimate->uses, 1, memory_order_relaxed) % SAMPLE_EVERY ==
	       0;
}

static uint64_t median_of(uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t low = a < b ? a : b, high = a < b ? b : a;

	return c < low ? low : (c > high ? high : c);
}

static bool is_within(uint64_t a, uint64_t b, uint64_t factor)
{
	return a <= factor * b && b <= factor * a;
}

static bool is_near(uint64_t a, uint64_t b)
{
	return is_within(a, b, 2);
}

/* Called by the helper thread, a few hundred times in a program's life. */
static void learn_typical(void)
{
	double sum_ns = 0, uses = 0;

	for (const struct estimate *e = table; e < table + ENTRIES; e++) {
		uint32_t stable_ns = atomic_load_explicit(&e->stable_ns, memory_order_relaxed);
		uint32_t own = atomic_load_explicit(&e->uses, memory_order_relaxed);

		if (!stable_ns)
			continue;
		sum_ns += (double)stable_ns * own;
		uses += own;
	}
	if (uses > 0)
		atomic_store_explicit(&typical_ns, (uint32_t)(sum_ns / uses), memory_order_relaxed);
}

uint64_t estimate_paid_ns(const struct estimate *e)
{
	uint32_t stable_ns = atomic_load_explicit(&e->stable_ns, memory_order_relaxed);

	return stable_ns ? stable_ns : atomic_load_explicit(&typical_ns, memory_order_relaxed);
}

/* `median` is that of the last three samples, `known` the estimate. */
static void update_stable(struct estimate *e, uint64_t median, uint64_t known)
{
	uint64_t stable = atomic_load_explicit(&e->stable_ns, memory_order_relaxed);

	if (stable && is_within(stable, known, STABLE_FACTOR))
		return;
	atomic_store_explicit(&e->stable_ns, (uint32_t)(stable ? known : median),
			      memory_order_relaxed);
	learn_typical();
}

void estimate_learn(struct estimate *e, uint64_t key, uint64_t ns)
{
	if (atomic_load_explicit(&e->key, memory_order_relaxed) != key)
		return;
	if (ns < 1)
		ns = 1;
	if (ns > UINT32_MAX)
		ns = UINT32_MAX;
	uint64_t known = atomic_load_explicit(&e->ns, memory_order_relaxed);
	uint32_t wanted = atomic_load_explicit(&e->samples_wanted, memory_order_relaxed);
	uint32_t last = atomic_load_explicit(&e->last, memory_order_relaxed);
	uint32_t before = atomic_load_explicit(&e->before, memory_order_relaxed);
	uint32_t surprises = atomic_load_explicit(&e->surprises, memory_order_relaxed);
	uint64_t median = before ? median_of(ns, last, before) : (last && last < ns ? last : ns);
	uint64_t typical = median;

	atomic_store_explicit(&e->before, last, memory_order_relaxed);
	atomic_store_explicit(&e->last, (uint32_t)ns, memory_order_relaxed);
	/* After a surprise, time the next launches, not only one in SAMPLE_EVERY. */
	if (known && !is_near(known, ns)) {
		wanted = SAMPLES_AFTER_SURPRISE;
		if (last && surprises < SURPRISES_MOST)
			surprises++;
	} else if (wanted)
		wanted--;
	atomic_store_explicit(&e->samples_wanted, wanted, memory_order_relaxed);
	atomic_store_explicit(&e->surprises, surprises, memory_order_relaxed);
	/* Without an earlier sample (`last`), the estimate is an upper bound from estimate_learn_concurrent(). */
	if (known && !last)
		typical = ns < known ? ns : known;
	else if (known && is_near(known, typical))
		typical = (known * 3 + typical) / 4;
	atomic_store_explicit(&e->ns, typical, memory_order_relaxed);
	if (before)
		update_stable(e, median, typical);
}

void estimate_learn_concurrent(struct estimate *e, uint64_t key, uint64_t ns)
{
	uint64_t known = atomic_load_explicit(&e->ns, memory_order_relaxed);

	if (atomic_load_explicit(&e->key, memory_order_relaxed) != key)
		return;
	if (ns < 1)
		ns = 1;
	if (ns > UINT32_MAX)
		ns = UINT32_MAX;
	if (!known || ns < known)
		atomic_store_explicit(&e->ns, ns, memory_order_relaxed);
	if (!known || ns > known + known / 4)
		atomic_store_explicit(&e->samples_wanted, FIRST_SAMPLES, memory_order_relaxed);
}

bool estimate_wants_bound(struct estimate *e)
{
	uint32_t uses = atomic_fetch_add_explicit(&e->uses, 1, memory_order_relaxed);

	return uses % SAMPLE_EVERY == 0 || !atomic_load_explicit(&e->ns, memory_order_relaxed);
}
