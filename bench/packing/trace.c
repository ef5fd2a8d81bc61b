#include "packing/trace.h"

#include <math.h>

enum { P100, T4, V100M16, V100M32, G2, G3, A10 };
#define ONLY(model) (1u << (model))

const struct packing_model packing_models[PACKING_MODELS] = {
	[P100] = { "P100", 16384 },       [T4] = { "T4", 16384 }, [V100M16] = { "V100M16", 16384 },
	[V100M32] = { "V100M32", 32768 }, [G2] = { "G2", 81920 }, [G3] = { "G3", 81920 },
	[A10] = { "A10", 24576 },
};

/* openb_node_list_gpu_node.csv: 1,213 nodes, 6,212 GPUs. */
const struct packing_machine packing_machines[] = {
	{ G2, 8, 96000, 549 },     { T4, 2, 104000, 387 },    { P100, 2, 16000, 107 },
	{ G3, 8, 128000, 39 },     { V100M16, 4, 32000, 28 }, { P100, 2, 64000, 22 },
	{ V100M32, 8, 96000, 21 }, { V100M16, 1, 8000, 19 },  { T4, 4, 96000, 17 },
	{ V100M32, 4, 48000, 9 },  { V100M16, 8, 64000, 7 },  { P100, 1, 8000, 3 },
	{ P100, 2, 8000, 2 },      { A10, 1, 128000, 2 },     { V100M16, 8, 82000, 1 },
};
const size_t packing_machine_count = sizeof(packing_machines) / sizeof(packing_machines[0]);

const char *const packing_class_names[PACKING_CLASSES] = {
	"no GPU", "a part of a GPU", "1 GPU", "2 GPUs", "4 GPUs", "8 GPUs",
};

/* openb_pod_list_default.csv: 8,152 tasks by GPUs, thousandths of each, thousandths of a CPU; how many. */
static const struct {
	unsigned cards, milli, cpu_milli, tasks;
} sizes[] = {
	{ 0, 0, 8000, 185 },     { 0, 0, 10000, 1 },      { 0, 0, 11400, 11 },
	{ 0, 0, 12000, 4 },      { 0, 0, 12500, 366 },    { 0, 0, 15400, 120 },
	{ 0, 0, 16000, 14 },     { 0, 0, 16500, 95 },     { 0, 0, 20000, 2 },
	{ 0, 0, 32000, 290 },    { 1, 50, 4000, 3 },      { 1, 50, 6000, 4 },
	{ 1, 110, 4000, 18 },    { 1, 110, 6000, 4 },     { 1, 110, 8000, 2 },
	{ 1, 140, 1000, 1 },     { 1, 160, 4000, 54 },    { 1, 160, 6000, 20 },
	{ 1, 220, 4000, 43 },    { 1, 220, 8000, 19 },    { 1, 230, 4000, 122 },
	{ 1, 230, 8000, 18 },    { 1, 270, 4152, 4 },     { 1, 290, 1000, 1 },
	{ 1, 320, 1000, 22 },    { 1, 320, 4000, 232 },   { 1, 320, 6000, 2 },
	{ 1, 320, 8000, 72 },    { 1, 330, 4000, 7 },     { 1, 350, 4000, 6 },
	{ 1, 370, 2000, 2 },     { 1, 370, 4152, 45 },    { 1, 440, 8000, 2 },
	{ 1, 460, 6000, 120 },   { 1, 460, 8000, 2 },     { 1, 460, 12000, 6 },
	{ 1, 470, 4000, 2 },     { 1, 470, 8000, 360 },   { 1, 470, 11908, 388 },
	{ 1, 480, 4000, 18 },    { 1, 480, 8000, 1 },     { 1, 550, 4152, 72 },
	{ 1, 590, 3152, 75 },    { 1, 650, 1000, 2 },     { 1, 650, 4000, 2 },
	{ 1, 650, 8000, 12 },    { 1, 650, 11908, 237 },  { 1, 810, 3152, 1047 },
	{ 1, 810, 4152, 31 },    { 1, 1000, 1000, 15 },   { 1, 1000, 2000, 8 },
	{ 1, 1000, 3152, 470 },  { 1, 1000, 4000, 159 },  { 1, 1000, 5000, 1 },
	{ 1, 1000, 6000, 8 },    { 1, 1000, 7000, 11 },   { 1, 1000, 8000, 164 },
	{ 1, 1000, 8200, 41 },   { 1, 1000, 8710, 1 },    { 1, 1000, 9400, 6 },
	{ 1, 1000, 9810, 195 },  { 1, 1000, 11300, 874 }, { 1, 1000, 11400, 599 },
	{ 1, 1000, 11800, 1 },   { 1, 1000, 11900, 55 },  { 1, 1000, 11908, 153 },
	{ 1, 1000, 12000, 326 }, { 1, 1000, 14000, 1 },   { 1, 1000, 14200, 93 },
	{ 1, 1000, 14900, 8 },   { 1, 1000, 15200, 36 },  { 1, 1000, 15400, 9 },
	{ 1, 1000, 15700, 158 }, { 1, 1000, 15900, 1 },   { 1, 1000, 16000, 150 },
	{ 1, 1000, 16400, 29 },  { 1, 1000, 18708, 255 }, { 1, 1000, 24200, 84 },
	{ 2, 1000, 6000, 3 },    { 2, 1000, 14000, 1 },   { 2, 1000, 16200, 7 },
	{ 2, 1000, 17400, 2 },   { 2, 1000, 30200, 3 },   { 4, 1000, 32000, 3 },
	{ 4, 1000, 32200, 9 },   { 4, 1000, 60200, 3 },   { 8, 1000, 64000, 3 },
	{ 8, 1000, 64200, 18 },  { 8, 1000, 88000, 18 },  { 8, 1000, 120000, 3 },
	{ 8, 1000, 120200, 2 },
};
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

/* openb_pod_list_gpuspec33.csv: by the models that will do, tasks of each class. */
#define V100 (ONLY(V100M16) | ONLY(V100M32))
static const struct {
	uint32_t models;
	unsigned tasks[PACKING_CLASSES];
} wishes[] = {
	{ PACKING_ANY_MODEL, { 1088, 2194, 2435, 9, 6, 32 } },
	{ ONLY(T4), { 0, 593, 698, 0, 0, 0 } },
	{ ONLY(G2), { 0, 0, 321, 0, 4, 6 } },
	{ ONLY(P100), { 0, 278, 1, 0, 0, 0 } },
	{ V100, { 0, 0, 156, 2, 5, 0 } },
	{ ONLY(P100) | V100, { 0, 0, 102, 1, 0, 0 } },
	{ ONLY(G3), { 0, 0, 80, 0, 0, 6 } },
	{ ONLY(G2) | ONLY(P100) | ONLY(T4) | V100, { 0, 13, 26, 0, 0, 0 } },
	{ ONLY(P100) | ONLY(T4) | V100, { 0, 0, 33, 0, 0, 0 } },
	{ ONLY(A10) | ONLY(G2) | ONLY(T4) | V100, { 0, 0, 24, 0, 0, 0 } },
	{ ONLY(V100M32), { 0, 0, 18, 2, 0, 0 } },
	{ ONLY(A10) | ONLY(T4), { 0, 0, 6, 0, 0, 0 } },
	{ ONLY(P100) | ONLY(V100M16), { 0, 0, 4, 0, 0, 0 } },
	{ ONLY(A10) | ONLY(G2) | ONLY(P100) | ONLY(T4) | V100, { 0, 0, 3, 0, 0, 0 } },
	{ ONLY(T4) | V100, { 0, 0, 1, 2, 0, 0 } },
	{ ONLY(V100M16), { 0, 0, 3, 0, 0, 0 } },
};
#define WISHES (sizeof(wishes) / sizeof(wishes[0]))

/* openb_pod_list_default.csv: seconds from scheduled_time to deletion_time; what had not ended counts to the trace's end. */
static const double at_part[] = { 0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99 };
#define QUANTILES (sizeof(at_part) / sizeof(at_part[0]))
#define DAY_S 86400.0
static const double lasted_s[PACKING_CLASSES][QUANTILES] = {
	{ 33, 141, 147, 175, 273, 496, 804, 1449, 2599, 13219, 19837, 28368 },
	{ 4, 55, 103, 173, 289, 539, 928, 1286, 2879, 9235, 20410, 77910 },
	{ 5, 80, 177, 251, 459, 758, 1210, 1974, 3536, 6030, 13278, 243803 },
	{ 40, 62, 450, 952, 1707, 2267, 2933, 4319, 14526, 27368, 912663, 912663 },
	{ 22, 23, 36, 36, 40, 542, 768, 2361, 6710, 23925, 44259, 44259 },
	{ 58, 136, 171, 417, 482, 553, 958, 3599, 61202, 101998, 209987, 1332357 },
};

/* ---- the workload histogram ---- */

static enum packing_class class_of(unsigned cards, unsigned milli)
{
	switch (cards) {
	case 0: return PACKING_NO_CARD;
	case 1: return milli < PACKING_WHOLE_MILLI ? PACKING_PART : PACKING_ONE;
	case 2: return PACKING_TWO;
	case 4: return PACKING_FOUR;
	default: return PACKING_EIGHT;
	}
}

static void add_kind(struct packing_histogram *histogram, struct packing_task task, double tasks)
{
	size_t k = 0;
	while (k < histogram->count && (histogram->kind[k].task.cards != task.cards ||
					histogram->kind[k].task.milli != task.milli ||
					histogram->kind[k].task.cpu_milli != task.cpu_milli ||
					histogram->kind[k].task.models != task.models))
		k++;
	if (k == histogram->count)
		histogram->kind[histogram->count++] = (struct packing_kind){ .task = task };
	histogram->kind[k].part += tasks;
}

void packing_histogram_make(bool has_models, bool has_cpus, struct packing_histogram *ret)
{
	double all = 0;
	ret->count = 0;
	for (size_t s = 0; s < SIZES; s++) {
		struct packing_task task = { .class = class_of(sizes[s].cards, sizes[s].milli),
					     .cards = sizes[s].cards,
					     .milli = sizes[s].milli,
					     .cpu_milli = has_cpus ? sizes[s].cpu_milli : 0,
					     .models = PACKING_ANY_MODEL };
		double of_class = 0;
		/* No extender hears of them. */
		if (!task.cards)
			continue;
		for (size_t w = 0; w < WISHES; w++)
			of_class += wishes[w].tasks[task.class];
		for (size_t w = 0; w < (has_models ? WISHES : 1); w++) {
			double part = has_models ? wishes[w].tasks[task.class] / of_class : 1;
			task.models = wishes[w].models;
			if (part > 0)
				add_kind(ret, task, sizes[s].tasks * part);
		}
		all += sizes[s].tasks;
	}
	for (size_t k = 0; k < ret->count; k++)
		ret->kind[k].part /= all;
}

/* ---- drawing ---- */

/* splitmix64, Vigna's. */
uint64_t packing_random_next(struct packing_random *random)
{
	uint64_t z = random->state += UINT64_C(0x9e3779b97f4a7c15);
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

double packing_random_part(struct packing_random *random)
{
	return (double)(packing_random_next(random) >> 11) * 0x1p-53;
}

const struct packing_task *packing_draw(const struct packing_histogram *histogram,
					struct packing_random *random)
{
	double at = packing_random_part(random);
	size_t k = 0;
	while (k + 1 < histogram->count && at >= histogram->kind[k].part)
		at -= histogram->kind[k++].part;
	return &histogram->kind[k].task;
}

/* Between two quantiles by the logarithm, as times are spread so. */
static double lasted_at(enum packing_class class, double part)
{
	const double *s = lasted_s[class];
	size_t q = 0;
	while (q + 2 < QUANTILES && part >= at_part[q + 1])
		q++;
	double within = (part - at_part[q]) / (at_part[q + 1] - at_part[q]);
	double is = exp(log(s[q]) + (log(s[q + 1]) - log(s[q])) * fmin(within, 1));
	return fmin(is, DAY_S);
}

double packing_draw_s(enum packing_class class, struct packing_random *random)
{
	return lasted_at(class, packing_random_part(random));
}

double packing_mean_s(enum packing_class class)
{
	double sum = 0;
	for (unsigned i = 0; i < 1000; i++)
		sum += lasted_at(class, (i + 0.5) / 1000);
	return sum / 1000;
}
