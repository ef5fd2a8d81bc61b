#include "rules.h"

#include <stdio.h>

const struct gpu_model_load hungry = { .kernel_ns = 1 * MS };
const struct gpu_model_load resting = { .kernel_ns = 0 };

struct bench bench_new(void)
{
	struct bench b = { .config = arbiter_default_config(), .now = 5 * SECOND };

	b.arbiter = arbiter_new(&b.config);
	assert_non_null(b.arbiter);
	return b;
}

int bench_add(struct bench *b, double cores, double limit)
{
	int index = arbiter_add(b->arbiter, b->now, (struct arbiter_share){ cores, limit });

	assert_in_range(index, 0, b->count);
	b->count += index == b->count;
	b->seen[index] = (struct arbiter_observation){ 0 }; /* of a tenant that was removed */
	arbiter_step(b->arbiter, b->now);
	return index;
}

void bench_step(struct bench *b, uint64_t after_ns)
{
	b->now += after_ns;
	for (int i = 0; i < b->count; i++) {
		if (b->seen[i].busy)
			b->seen[i].busy_ns += after_ns;
		arbiter_observe(b->arbiter, i, &b->seen[i]);
	}
	b->next = arbiter_step(b->arbiter, b->now);
	assert_true(b->next > b->now);
}

void bench_run_for(struct bench *b, uint64_t duration_ns)
{
	uint64_t end = b->now + duration_ns;

	bench_step(b, 0);
	while (b->next < end)
		bench_step(b, b->next - b->now);
	bench_step(b, end - b->now);
}

enum lease_state bench_state(const struct bench *b, int tenant)
{
	return arbiter_state(b->arbiter, tenant);
}

void bench_work(struct bench *b, int tenant)
{
	b->seen[tenant].waiting = false;
	b->seen[tenant].busy = true;
	b->seen[tenant].launches++;
}

void bench_rest(struct bench *b, int tenant)
{
	b->seen[tenant].waiting = b->seen[tenant].busy = b->seen[tenant].launching = false;
}

struct gpu_model *model_new(uint64_t seed)
{
	struct gpu_model_config config = gpu_model_default_config();

	config.seed = seed;
	return gpu_model_new(&config);
}

double share_over(struct gpu_model *m, int tenant, uint64_t duration_ns)
{
	uint64_t before = gpu_model_work_ns(m, tenant);

	gpu_model_run(m, duration_ns);
	return 100.0 * (double)(gpu_model_work_ns(m, tenant) - before) / (double)duration_ns;
}

static char table[65536];
static size_t table_used;

void table_add(const char *format, ...)
{
	va_list args;
	int length;

	va_start(args, format);
	length = vsnprintf(table + table_used, sizeof(table) - table_used, format, args);
	va_end(args);
	assert_in_range(length, 0, sizeof(table) - table_used - 1);
	table_used += (size_t)length;
}

const char *table_text(void)
{
	return table;
}
