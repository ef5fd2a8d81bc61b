#include "stillness.h"

#include <pthread.h>
#include <stdatomic.h>

#include "stage.h"

#define LOOK_MS 10
#define LOOKS 100

static _Atomic uint64_t worst_ns, all_ns;

static void *watch(void *unused)
{
	static uint64_t late_ns[LOOKS];
	uint64_t before = now_ns(), sum_ns = 0;

	(void)unused;
	for (unsigned i = 0;; i = (i + 1) % LOOKS) {
		sleep_ms(LOOK_MS);
		uint64_t now = now_ns(), late = now - before - LOOK_MS * 1000000ULL;
		all_ns += late;
		sum_ns += late - late_ns[i];
		late_ns[i] = late;
		if (sum_ns > worst_ns)
			worst_ns = sum_ns;
		before = now;
	}
	return NULL;
}

void stillness_watch(void)
{
	static bool is_watching;
	pthread_t thread;

	if (is_watching)
		return;
	if (pthread_create(&thread, NULL, watch, NULL) != 0)
		give_up("no thread to look at the clock");
	pthread_detach(thread);
	is_watching = true;
}

uint64_t stillness_worst_ns(void)
{
	return worst_ns;
}

uint64_t stillness_sum_ns(void)
{
	return all_ns;
}
