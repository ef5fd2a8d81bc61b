#pragma once

#include <time.h>

/* NVML counts the time of day in microseconds. */
static inline unsigned long long nvml_now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (unsigned long long)t.tv_sec * 1000000 + (unsigned long long)t.tv_nsec / 1000;
}
