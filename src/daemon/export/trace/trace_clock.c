#include "daemon/export/trace/trace_clock.h"

#include <stdio.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "base/cleanup.h"
#include "base/clock.h"

#define CLOCKSOURCE "/sys/devices/system/clocksource/clocksource0/current_clocksource"
#define TRIES 5

enum trace_clock trace_clock_choose(bool is_invariant, const char *kernels)
{
	/* The kernel uses one of these slow clocks if the processor's counter failed the kernel's checks. */
	static const char *const refuges[] = { "hpet", "acpi_pm", "jiffies", "refined-jiffies" };

	for (size_t i = 0; i < sizeof(refuges) / sizeof(refuges[0]); i++)
		if (!strcmp(kernels, refuges[i]))
			return TRACE_REALTIME;
	return is_invariant ? TRACE_COUNTER : TRACE_REALTIME;
}

/* True if the counter's rate is constant: CPUID leaf 0x80000007, EDX bit 8 (Intel's and AMD's manuals). Always true on Arm. */
static bool is_invariant(void)
{
#if defined(__x86_64__)
	unsigned int a, b, c, d = 0;
	return __get_cpuid(0x80000007, &a, &b, &c, &d) && d >> 8 & 1;
#elif defined(__aarch64__)
	return true;
#else
	return false;
#endif
}

enum trace_clock trace_clock_here(void)
{
	char kernels[64] = "";
	cleanup_file FILE *file = fopen(CLOCKSOURCE, "re");

	if (file && fgets(kernels, sizeof(kernels), file))
		kernels[strcspn(kernels, "\n")] = '\0';
	return trace_clock_choose(is_invariant(), kernels);
}

struct trace_moment trace_clock_now(enum trace_clock clock)
{
	struct trace_moment best = { 0 };
	uint64_t least = UINT64_MAX;

	/* The pair of readings with the least time between them is the most exact. */
	for (int i = 0; i < TRIES; i++) {
		uint64_t before = trace_ticks(clock);
		uint64_t now_ns = clock_now_ns();
		uint64_t apart = trace_ticks(clock) - before;
		if (apart >= least)
			continue;
		least = apart;
		best = (struct trace_moment){ before + apart / 2, now_ns };
	}
	return best;
}
