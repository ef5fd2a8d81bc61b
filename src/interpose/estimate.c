#include "interpose/estimate.h"

#define ENTRIES 4096 /* a power of two; 96 KiB, touched as used */
#define PLACES 4

static struct estimate table[ENTRIES];

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
	atomic_store_explicit(&victim->key, key, memory_order_relaxed);
	return victim;
}

bool estimate_wants_sample(struct estimate *estimate)
{
	uint32_t uses = atomic_fetch_add_explicit(&estimate->uses, 1, memory_order_relaxed);

	/*
	 * Until one sample has come back, every use asks: a stream has one sample under way at a time,
	 * so in a row of many different kernels the first few uses of most get none.
	 */
	return uses < 3 || uses % 64 == 0 ||
	       !atomic_load_explicit(&estimate->ns, memory_order_relaxed);
}

void estimate_learn(struct estimate *estimate, uint64_t key, uint64_t ns)
{
	if (atomic_load_explicit(&estimate->key, memory_order_relaxed) != key)
		return; /* replaced meanwhile */
	uint64_t known = atomic_load_explicit(&estimate->ns, memory_order_relaxed);
	atomic_store_explicit(&estimate->ns, known ? (known * 3 + ns) / 4 : (ns ? ns : 1),
			      memory_order_relaxed);
}
