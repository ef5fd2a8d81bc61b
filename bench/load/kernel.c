#include "kernel.h"

#include "clock.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define THREADS_PER_BLOCK 256

/* The result is compared with a value that it can't reach, so that no assembler
 * finds the loop useless; there is no store, hence no memory to account for. */
static const char ptx_body[] = ".address_size 64\n"
			       ".visible .entry allot_load(.param .u32 iters)\n"
			       "{\n"
			       "  .reg .pred %p<3>; .reg .f32 %f<4>; .reg .b32 %r<3>;\n"
			       "  ld.param.u32 %r1, [iters];\n"
			       "  mov.u32 %r2, %tid.x;\n"
			       "  cvt.rn.f32.u32 %f1, %r2;\n"
			       "  mov.f32 %f2, 0f3F7FF000;\n" /* 0.99976: the value converges */
			       "  mov.f32 %f3, 0f3A83126F;\n" /* 0.001 */
			       "  setp.eq.u32 %p1, %r1, 0;\n"
			       "  @%p1 bra END;\n"
			       "LOOP:\n"
			       "  fma.rn.f32 %f1, %f1, %f2, %f3;\n"
			       "  fma.rn.f32 %f1, %f1, %f2, %f3;\n"
			       "  fma.rn.f32 %f1, %f1, %f2, %f3;\n"
			       "  fma.rn.f32 %f1, %f1, %f2, %f3;\n"
			       "  fma.rn.f32 %f1, %f1, %f2, %f3;\n"
			       "  fma.rn.f32 %f1, %f1, %f2, %f3;\n"
			       "  fma.rn.f32 %f1, %f1, %f2, %f3;\n"
			       "  fma.rn.f32 %f1, %f1, %f2, %f3;\n"
			       "  sub.u32 %r1, %r1, 1;\n"
			       "  setp.ne.u32 %p1, %r1, 0;\n"
			       "  @%p1 bra LOOP;\n"
			       "END:\n"
			       "  setp.eq.f32 %p2, %f1, 0f7F800000;\n" /* infinity */
			       "  @%p2 trap;\n"
			       "  ret;\n"
			       "}\n";

/* Oldest first: the first head loads on every card that a 580 driver serves;
 * the others are for drivers that have dropped it. */
static const char *const ptx_heads[] = {
	".version 6.0\n.target sm_60\n",
	".version 7.0\n.target sm_75\n",
	".version 7.8\n.target sm_90\n",
};

static CUmodule load_module(const struct driver *d)
{
	CUmodule mod = NULL;
	CUresult r = CUDA_ERROR_NOT_FOUND;
	for (size_t i = 0; i < sizeof ptx_heads / sizeof ptx_heads[0]; i++) {
		char text[sizeof ptx_body + 64];
		snprintf(text, sizeof text, "%s%s", ptx_heads[i], ptx_body);
		r = d->module_load(&mod, text);
		if (r == CUDA_SUCCESS)
			break;
	}
	driver_check(d, r, offsetof(struct driver, module_load));
	return mod;
}

/* Whether this is the simulated GPU, whose modules hold a kernel for every cost. */
static bool load_simulated(struct kernel *k, const struct driver *d, CUmodule mod, unsigned cost_us)
{
	CUfunction probe;
	if (d->module_function(&probe, mod, "allot_sim_1000us_132b") != CUDA_SUCCESS)
		return false;
	char name[64];
	snprintf(name, sizeof name, "allot_sim_%uus_%ub", cost_us, k->blocks);
	DRIVER_DO(d, module_function, &k->function, mod, name);
	k->simulated = true;
	k->cost_s = cost_us / 1e6;
	return true;
}

/* Time of one kernel in a row of `count`, launch gaps included: that is what
 * one kernel costs a GPU that does nothing else. */
static double time_row(const struct kernel *k, const struct driver *d, CUstream s, unsigned count)
{
	uint64_t begin_ns = clock_now_ns();
	for (unsigned i = 0; i < count; i++)
		kernel_launch(k, d, s);
	DRIVER_DO(d, stream_sync, s);
	return (double)(clock_now_ns() - begin_ns) / 1e9 / count;
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double time_kernel(const struct kernel *k, const struct driver *d, CUstream s,
			  double expected_s)
{
	enum { ROUNDS = 5 };
	double times[ROUNDS];
	double want = 0.03 / expected_s; /* 30 ms: one synchronization is 0.03 % of it */
	unsigned count = want < 2 ? 2 : want > 1000 ? 1000 : (unsigned)want;
	for (int i = 0; i < ROUNDS; i++)
		times[i] = time_row(k, d, s, count);
	qsort(times, ROUNDS, sizeof times[0], compare_doubles);
	return times[ROUNDS / 2];
}

static void warm_up(struct kernel *k, const struct driver *d, CUstream s)
{
	uint64_t begin_ns = clock_now_ns();
	k->iters = 1000;
	while (clock_now_ns() - begin_ns < NS_PER_S * 3 / 10) /* clocks rise in 0.1 to 0.2 s */
		time_row(k, d, s, 16);
}

static void calibrate(struct kernel *k, const struct driver *d, double target_s)
{
	CUstream s;
	DRIVER_DO(d, stream_create, &s, DRIVER_STREAM_NON_BLOCKING);
	warm_up(k, d, s);

	/* The cost is a line, a fixed part plus one a turn: two points give the
	 * slope, and a second pass near the target corrects what is not linear. */
	uint32_t low = 1000;
	k->iters = low;
	double low_s = time_row(k, d, s, 64);
	k->iters = low * 10;
	double high_s = time_row(k, d, s, 64);
	double slope_s = (high_s - low_s) / (low * 9);
	if (slope_s <= 0) {
		fprintf(stderr,
			"allot-load: calibration: the kernel's time does not grow with its work; "
			"is the GPU shared?\n");
		exit(1);
	}
	double iters = low + (target_s - low_s) / slope_s;
	for (int pass = 0; pass < 3; pass++) {
		k->iters = (uint32_t)fmin(fmax(round(iters), 1), 4e9);
		k->cost_s = time_kernel(k, d, s, target_s);
		iters = k->iters + (target_s - k->cost_s) / slope_s;
	}
	/* The measured cost is what counts, so this is no error; but an idle GPU is steadier. */
	if (k->cost_s < target_s * 0.95 || k->cost_s > target_s * 1.05)
		fprintf(stderr,
			"allot-load: calibration: asked for %.1f us, got %.1f; is the GPU shared?\n",
			target_s * 1e6, k->cost_s * 1e6);
	DRIVER_DO(d, stream_destroy, s);
}

void kernel_load(struct kernel *k, const struct driver *d, unsigned cost_us, unsigned blocks,
		 uint32_t iters)
{
	CUmodule mod = load_module(d);
	*k = (struct kernel){ .blocks = blocks, .iters = iters, .cost_s = cost_us / 1e6 };
	if (load_simulated(k, d, mod, cost_us))
		return;
	DRIVER_DO(d, module_function, &k->function, mod, "allot_load");
	if (iters == 0)
		calibrate(k, d, cost_us / 1e6);
}

void kernel_launch(const struct kernel *k, const struct driver *d, CUstream stream)
{
	uint32_t iters = k->iters;
	void *params[] = { &iters };
	if (k->cooperative)
		DRIVER_DO(d, launch_cooperative, k->function, k->blocks, 1, 1, THREADS_PER_BLOCK, 1,
			  1, 0, stream, k->simulated ? NULL : params);
	else
		DRIVER_DO(d, launch, k->function, k->blocks, 1, 1, THREADS_PER_BLOCK, 1, 1, 0,
			  stream, k->simulated ? NULL : params, NULL);
}
