#include "library/launch/flight/flight_sample.h"

#include <string.h>

#include "library/loader/real.h"

_Static_assert(FLIGHT_SAMPLES < 32, "a bit of each in one word, and one that is never set");

static struct flight_sample {
	CUevent start, end; /* timed; made on first use */
	struct estimate *estimate;
	uint64_t key;
	bool is_beside_others;
} samples[FLIGHT_RECORDS][FLIGHT_SAMPLES];

static struct flight_sample *samples_of(const struct flight_stream *s)
{
	return samples[s - flight_streams];
}

static int take(struct flight_stream *s, uint32_t most)
{
	uint32_t taken = atomic_load_explicit(&s->samples_taken, memory_order_relaxed);
	int first;

	do {
		first = __builtin_ctz(~taken);
		if (first >= FLIGHT_SAMPLES || (uint32_t)__builtin_popcount(taken) >= most)
			return FLIGHT_NO_SAMPLE;
	} while (!atomic_compare_exchange_weak_explicit(&s->samples_taken, &taken,
							taken | 1U << first, memory_order_acquire,
							memory_order_relaxed));
	return first;
}

static bool start(struct flight_stream *s, struct flight_sample *sample)
{
	return s->head - s->tail < FLIGHT_RING &&
	       (sample->start || !real.cuEventCreate(&sample->start, CU_EVENT_DEFAULT)) &&
	       (sample->end || !real.cuEventCreate(&sample->end, CU_EVENT_DEFAULT)) &&
	       !real.cuEventRecord(sample->start, s->handle);
}

int flight_sample_begin(struct flight_stream *s, struct estimate *estimate, bool is_beside_others,
			uint32_t most)
{
	int taken = take(s, most);

	if (taken == FLIGHT_NO_SAMPLE)
		return taken;
	WITH_LOCK(&s->lock);
	struct flight_sample *sample = &samples_of(s)[taken];
	if (!start(s, sample)) {
		flight_sample_give(s, taken);
		return FLIGHT_NO_SAMPLE;
	}
	sample->is_beside_others = is_beside_others;
	sample->estimate = estimate;
	sample->key = atomic_load_explicit(&estimate->key, memory_order_relaxed);
	return taken;
}

void flight_sample_give(struct flight_stream *s, int sample)
{
	if (sample != FLIGHT_NO_SAMPLE)
		atomic_fetch_and_explicit(&s->samples_taken, ~(1U << sample), memory_order_release);
}

CUevent flight_sample_end(const struct flight_stream *s, int sample)
{
	return samples_of(s)[sample].end;
}

void flight_sample_learn(struct flight_stream *s, int at)
{
	const struct flight_sample *sample = &samples_of(s)[at];
	void (*learn)(struct estimate *, uint64_t,
		      uint64_t) = sample->is_beside_others ? estimate_learn_beside : estimate_learn;
	float ms = 0;

	if (real.cuEventElapsedTime &&
	    real.cuEventElapsedTime(&ms, sample->start, sample->end) == CUDA_SUCCESS && ms >= 0)
		learn(sample->estimate, sample->key, (uint64_t)(ms * 1e6F));
	flight_sample_give(s, at);
}

void flight_sample_drop(struct flight_stream *s, bool context_lives)
{
	for (int i = 0; i < FLIGHT_SAMPLES; i++) {
		struct flight_sample *sample = &samples_of(s)[i];

		if (sample->start && context_lives)
			real.cuEventDestroy_v2(sample->start);
		if (sample->end && context_lives)
			real.cuEventDestroy_v2(sample->end);
		sample->start = sample->end = NULL;
	}
}

void flight_sample_forget(struct flight_stream *s)
{
	memset(samples_of(s), 0, sizeof(samples[0]));
}
