#include "library/launch/inflight/inflight_sample.h"

#include <string.h>

#include "library/loader/real.h"

_Static_assert(INFLIGHT_SAMPLES < 32, "a bit of each in one word, and one that is never set");

static struct inflight_sample {
	CUevent start, end; /* timed; made on first use */
	struct estimate *estimate;
	uint64_t key;
	bool is_concurrent;
} samples[INFLIGHT_RECORDS][INFLIGHT_SAMPLES];

static struct inflight_sample *samples_of(const struct inflight_stream *s)
{
	return samples[s - inflight_streams];
}

static int take(struct inflight_stream *s, uint32_t most)
{
	uint32_t taken = atomic_load_explicit(&s->samples_taken, memory_order_relaxed);
	int first;

	do {
		first = __builtin_ctz(~taken);
		if (first >= INFLIGHT_SAMPLES || (uint32_t)__builtin_popcount(taken) >= most)
			return INFLIGHT_NO_SAMPLE;
	} while (!atomic_compare_exchange_weak_explicit(&s->samples_taken, &taken,
							taken | 1U << first, memory_order_acquire,
							memory_order_relaxed));
	return first;
}

static bool start(struct inflight_stream *s, struct inflight_sample *sample)
{
	return s->head - s->tail < INFLIGHT_RING &&
	       (sample->start || !real.cuEventCreate(&sample->start, CU_EVENT_DEFAULT)) &&
	       (sample->end || !real.cuEventCreate(&sample->end, CU_EVENT_DEFAULT)) &&
	       !real.cuEventRecord(sample->start, s->handle);
}

int inflight_sample_begin(struct inflight_stream *s, struct estimate *estimate, bool is_concurrent,
			  uint32_t most)
{
	int taken = take(s, most);

	if (taken == INFLIGHT_NO_SAMPLE)
		return taken;
	WITH_LOCK(&s->lock);
	struct inflight_sample *sample = &samples_of(s)[taken];
	if (!start(s, sample)) {
		inflight_sample_release(s, taken);
		return INFLIGHT_NO_SAMPLE;
	}
	sample->is_concurrent = is_concurrent;
	sample->estimate = estimate;
	sample->key = atomic_load_explicit(&estimate->key, memory_order_relaxed);
	return taken;
}

void inflight_sample_release(struct inflight_stream *s, int sample)
{
	if (sample != INFLIGHT_NO_SAMPLE)
		atomic_fetch_and_explicit(&s->samples_taken, ~(1U << sample), memory_order_release);
}

CUevent inflight_sample_end(const struct inflight_stream *s, int sample)
{
	return samples_of(s)[sample].end;
}

void inflight_sample_learn(struct inflight_stream *s, int at)
{
	const struct inflight_sample *sample = &samples_of(s)[at];
	void (*learn)(struct estimate *, uint64_t, uint64_t) = sample->is_concurrent
								       ? estimate_learn_concurrent
								       : estimate_learn;
	float ms = 0;

	if (real.cuEventElapsedTime &&
	    real.cuEventElapsedTime(&ms, sample->start, sample->end) == CUDA_SUCCESS && ms >= 0)
		learn(sample->estimate, sample->key, (uint64_t)(ms * 1e6F));
	inflight_sample_release(s, at);
}

void inflight_sample_drop(struct inflight_stream *s, bool context_lives)
{
	for (int i = 0; i < INFLIGHT_SAMPLES; i++) {
		struct inflight_sample *sample = &samples_of(s)[i];

		if (sample->start && context_lives)
			real.cuEventDestroy_v2(sample->start);
		if (sample->end && context_lives)
			real.cuEventDestroy_v2(sample->end);
		sample->start = sample->end = NULL;
	}
}

void inflight_sample_forget(struct inflight_stream *s)
{
	memset(samples_of(s), 0, sizeof(samples[0]));
}
