/* The map of a process's allocations: compared with a model, under threads, and the cost of a removal. */
#include "../test.h"

#include <pthread.h>

#include "library/memory/ptrmap.h"
#include "library/sys/sys.h"

static struct holding memory_at(uint64_t key, uint64_t bytes, uint64_t owner)
{
	return (struct holding){
		.kind = HOLDING_MEMORY,
		.key = key,
		.device = 3,
		.bytes = bytes,
		.owner = owner,
	};
}

static void test_finds_what_was_inserted(void **state)
{
	struct holding in = memory_at(0x7f0000000000, 512, 9), out;

	ptrmap_reset();
	assert_false(ptrmap_find(HOLDING_MEMORY, in.key, &out));
	assert_false(ptrmap_remove(HOLDING_MEMORY, in.key, &out));
	assert_false(ptrmap_update(&in));
	assert_true(ptrmap_insert(&in));
	assert_true(ptrmap_find(HOLDING_MEMORY, in.key, &out));
	assert_memory_equal(&in, &out, sizeof(in));
	/* The kind is part of the key. */
	assert_false(ptrmap_find(HOLDING_ARRAY, in.key, &out));
	in.bytes = 1024;
	assert_true(ptrmap_update(&in));
	assert_true(ptrmap_remove(HOLDING_MEMORY, in.key, &out));
	assert_int_equal(out.bytes, 1024);
	assert_false(ptrmap_remove(HOLDING_MEMORY, in.key, &out));
}

/* Also over an entry of another kind: a single one, or a part of a chunk. */
static void test_takes_a_key_of_zero_and_inserts_over(void **state)
{
	static const uint64_t bytes[] = { 1, 2, 2 << 20, 4 << 20, 3, 512, 16 << 20, 1ULL << 40 };
	struct holding in, out;

	ptrmap_reset();
	for (size_t i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++) {
		in = memory_at(0, bytes[i], 0);
		assert_true(ptrmap_insert(&in));
		assert_true(ptrmap_find(HOLDING_MEMORY, 0, &out));
		assert_memory_equal(&in, &out, sizeof(in));
	}
	assert_true(ptrmap_remove(HOLDING_MEMORY, 0, &out));
	assert_memory_equal(&in, &out, sizeof(in));
	assert_false(ptrmap_find(HOLDING_MEMORY, 0, &out));
}

/* Neighbours of one chunk of addresses: of other contexts, of other devices, of odd sizes. */
static void test_keeps_neighbours_apart(void **state)
{
	static const uint64_t step[] = { 512, 2 << 20 }; /* of the first, each has its own place */
	struct holding in[4], out;

	for (size_t k = 0; k < 2; k++) {
		ptrmap_reset();
		in[0] = memory_at(0x7f0000000000, step[k], 1);
		in[1] = memory_at(in[0].key + step[k], step[k], 2);
		in[2] = memory_at(in[1].key + step[k], 8 * step[k], 1);
		in[2].device = 4;
		in[3] = memory_at(in[2].key + 8 * step[k], 100, 1);
		for (size_t i = 0; i < 4; i++)
			assert_true(ptrmap_insert(&in[i]));
		assert_false(ptrmap_find(HOLDING_MEMORY, in[0].key + 1, &out));
		assert_false(ptrmap_find(HOLDING_MEMORY, in[2].key + step[k], &out));
		for (size_t i = 0; i < 4; i++) {
			assert_true(ptrmap_remove(HOLDING_MEMORY, in[i].key, &out));
			assert_memory_equal(&in[i], &out, sizeof(out));
			assert_false(ptrmap_remove(HOLDING_MEMORY, in[i].key, &out));
		}
	}
}

#define MODEL_KEYS 4096
#define MODEL_OWNERS 5

struct model {
	bool is_held[MODEL_KEYS];
	struct holding held[MODEL_KEYS];
};

/* Device pointers like a driver's: multiples of 512 bytes or 2 MiB, in two kinds. */
static struct holding key_of_model(unsigned i)
{
	struct holding h = memory_at(
		0x7f2a00000000 + (uint64_t)(i / 2) * (i % 4 < 2 ? 512 : 0x200000), 0, 0);

	h.kind = i % 2 ? HOLDING_ARRAY : HOLDING_MEMORY;
	if (i % 4 >= 2)
		h.key += 0x100000000000;
	return h;
}

static uint64_t random_bytes(uint64_t *random)
{
	uint64_t n = test_random(random) % 9;

	switch (test_random(random) % 4) {
	case 0: return test_random(random);
	case 1: return n * 0x200000;
	default: return n * 512;
	}
}

/* Most of one context, as it is in a program. */
static uint64_t random_owner(uint64_t *random)
{
	return test_random(random) % 4 ? 1 : 1 + test_random(random) % MODEL_OWNERS;
}

static void drop_from_model(const struct holding *h, void *context)
{
	struct model *model = context;

	for (unsigned i = 0; i < MODEL_KEYS; i++)
		if (model->is_held[i] && model->held[i].key == h->key &&
		    model->held[i].kind == h->kind) {
			assert_int_equal(model->held[i].bytes, h->bytes);
			model->is_held[i] = false;
			return;
		}
	fail_msg("dropped what was not held");
}

static void compare_all(const struct model *model)
{
	for (unsigned i = 0; i < MODEL_KEYS; i++) {
		struct holding want = key_of_model(i), got;
		assert_int_equal(ptrmap_find(want.kind, want.key, &got), model->is_held[i]);
		if (model->is_held[i])
			assert_memory_equal(&got, &model->held[i], sizeof(got));
	}
}

static void step_model(struct model *model, uint64_t *random)
{
	unsigned i = (unsigned)(test_random(random) % MODEL_KEYS);
	struct holding h = key_of_model(i), got;

	switch (test_random(random) % 16) {
	case 0:
	case 1:
	case 2:
	case 3:
	case 4:
	case 5:
	case 6:
		h.bytes = random_bytes(random);
		h.owner = random_owner(random);
		assert_true(ptrmap_insert(&h));
		model->held[i] = h;
		model->is_held[i] = true;
		break;
	case 7:
		h.bytes = random_bytes(random);
		h.owner = random_owner(random);
		assert_int_equal(ptrmap_update(&h), model->is_held[i]);
		if (model->is_held[i])
			model->held[i] = h;
		break;
	default:
		assert_int_equal(ptrmap_remove(h.kind, h.key, &got), model->is_held[i]);
		if (model->is_held[i])
			assert_memory_equal(&got, &model->held[i], sizeof(got));
		model->is_held[i] = false;
	}
}

static void test_agrees_with_a_model(void **state)
{
	static struct model model;
	uint64_t random = 0x5eed;

	ptrmap_reset();
	for (unsigned i = 0; i < 1000000; i++) {
		step_model(&model, &random);
		if (i % 100000 == 0)
			compare_all(&model);
		if (i % 150000 == 149999) {
			uint64_t owner = 1 + test_random(&random) % MODEL_OWNERS;
			ptrmap_remove_owned(owner, drop_from_model, &model);
			for (unsigned k = 0; k < MODEL_KEYS; k++)
				assert_false(model.is_held[k] && model.held[k].owner == owner);
		}
	}
	compare_all(&model);
}

#define THREADS 8
#define KEYS_OF_THREAD 1000

static void *churn(void *context)
{
	/* Two threads a chunk. */
	uint64_t base = (uint64_t)(uintptr_t)context * KEYS_OF_THREAD * 512, random = base + 1,
		 wrong = 0;
	bool is_held[KEYS_OF_THREAD] = { false };

	for (unsigned n = 0; n < 200000; n++) {
		unsigned i = (unsigned)(test_random(&random) % KEYS_OF_THREAD);
		struct holding got;
		struct holding h = memory_at(base + i * 512, i % 3 ? i % 3 * 512 : i, 0);
		if (is_held[i]) {
			wrong += !ptrmap_remove(HOLDING_MEMORY, h.key, &got) || got.bytes != h.bytes;
			is_held[i] = false;
		} else {
			wrong += !ptrmap_insert(&h);
			is_held[i] = true;
		}
	}
	for (unsigned i = 0; i < KEYS_OF_THREAD; i++) {
		struct holding got;
		wrong += ptrmap_remove(HOLDING_MEMORY, base + i * 512, &got) != is_held[i];
	}
	return (void *)(uintptr_t)wrong;
}

static void count_one(const struct holding *h, void *context)
{
	++*(unsigned *)context;
}

static void test_threads_do_not_disturb_each_other(void **state)
{
	pthread_t threads[THREADS];
	unsigned left = 0;

	ptrmap_reset();
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, churn, (void *)(i + 1)), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		void *wrong;
		pthread_join(threads[i], &wrong);
		assert_null(wrong);
	}
	ptrmap_remove_owned(0, count_one, &left);
	assert_int_equal(left, 0);
}

/* ---- cost ---- */

#define SAMPLES 2001
#define ROUNDS 7
#define BATCH 10

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static int compare_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Median time of freeing and allocating ten random ones of `live`, in nanoseconds. */
static uint64_t median_of_ten(unsigned live, uint64_t bytes)
{
	static uint64_t took[SAMPLES];
	uint64_t random = live;
	struct holding got;

	ptrmap_reset();
	for (unsigned i = 0; i < live; i++) {
		struct holding h = memory_at(0x7f0000000000 + i * bytes, bytes, 0);
		assert_true(ptrmap_insert(&h));
	}
	for (unsigned n = 0; n < SAMPLES; n++) {
		uint64_t pick[BATCH];
		for (unsigned k = 0; k < BATCH; k++)
			pick[k] = 0x7f0000000000 + test_random(&random) % live * bytes;
		uint64_t start = sys_now_ns();
		for (unsigned k = 0; k < BATCH; k++)
			if (ptrmap_remove(HOLDING_MEMORY, pick[k], &got))
				ptrmap_insert(&got);
		took[n] = sys_now_ns() - start;
	}
	qsort(took, SAMPLES, sizeof(took[0]), compare_u64);
	return took[SAMPLES / 2];
}

static double median_ratio(uint64_t bytes)
{
	double ratios[ROUNDS];

	for (unsigned round = 0; round < ROUNDS; round++) {
		uint64_t few = median_of_ten(100, bytes), many = median_of_ten(100000, bytes);
		ratios[round] = (double)many / (double)few;
		print_message("of %llu bytes, free and insert: %.1f ns with 100 live, %.1f ns with "
			      "100,000: %.2f\n",
			      (unsigned long long)bytes, (double)few / BATCH, (double)many / BATCH,
			      ratios[round]);
	}
	ptrmap_reset();
	qsort(ratios, ROUNDS, sizeof(ratios[0]), compare_double);
	return ratios[ROUNDS / 2];
}

static void test_cost_does_not_grow(void **state)
{
	assert_true(median_ratio(2 << 20) <= 2.0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_finds_what_was_inserted),
		cmocka_unit_test(test_takes_a_key_of_zero_and_inserts_over),
		cmocka_unit_test(test_keeps_neighbours_apart),
		cmocka_unit_test(test_agrees_with_a_model),
		cmocka_unit_test(test_threads_do_not_disturb_each_other),
		cmocka_unit_test(test_cost_does_not_grow),
	};

	return cmocka_run_group_tests_name("ptrmap", tests, NULL, NULL);
}
