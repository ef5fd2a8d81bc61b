#include "daemon/gpu/sensor.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/util/worker.h"

#define SENSOR_EVERY_NS (100 * NSEC_PER_MSEC)
/* If no new sample comes for this long, all samples are dropped. */
#define SENSOR_OLD_US UINT64_C(1000000)
#define SENSOR_MAX_PROCESSES 1024

struct sensor {
	const struct gpu_backend *backend;
	struct gpu *gpu;
	unsigned index;
	struct arbitration *arbitration;
	struct worker worker;
	bool is_failing; /* at the last poll NVML did not report use */
	/* how often is_failing became true */
	_Atomic uint64_t failures;
	uint64_t newest_us;   /* newest stamp of all samples, on the driver's clock */
	uint64_t advanced_ns; /* when newest_us last changed, on our clock */
	struct gpu_use use[SENSOR_MAX_PROCESSES];
};

/* Returns 0 if no new sample has come for SENSOR_OLD_US: an old figure would throttle a process that is idle now. */
static size_t drop_old(struct sensor *s, size_t count)
{
	uint64_t newest_us = s->newest_us;
	for (size_t i = 0; i < count; i++)
		if (s->use[i].stamp_us > newest_us)
			newest_us = s->use[i].stamp_us;
	if (newest_us != s->newest_us)
		s->advanced_ns = clock_now_ns();
	s->newest_us = newest_us;
	return clock_now_ns() - s->advanced_ns < SENSOR_OLD_US * 1000 ? count : 0;
}

static void read_use(struct sensor *s)
{
	struct error err = { 0 };
	size_t count = 0;
	uint64_t since_us = s->newest_us > SENSOR_OLD_US ? s->newest_us - SENSOR_OLD_US : 0;
	int r = -EOPNOTSUPP;
	if (s->backend->use)
		r = s->backend->use(s->gpu, s->index, since_us, s->use, SENSOR_MAX_PROCESSES,
				    &count, &err);
	/* Pass on only the first failure in a row, as an empty list: further failures change nothing. */
	if (r < 0 && s->is_failing)
		return;
	s->is_failing = r < 0;
	if (r < 0)
		count = 0;
	if (r < 0 && atomic_fetch_add(&s->failures, 1) == 0)
		log_warning("feedback_sensor nvml: the GPU time of processes can't be read (%s): "
			    "the busy time that allot measures is used instead",
			    err.text[0] ? err.text : "the driver does not offer it");
	arbitration_set_use(s->arbitration, s->use, drop_old(s, count));
}

static void *run(void *data)
{
	struct sensor *s = data;
	prctl(PR_SET_NAME, "allot-sensor");
	pthread_mutex_lock(&s->worker.lock);
	while (!s->worker.stop) {
		pthread_mutex_unlock(&s->worker.lock);
		read_use(s);
		struct timespec until = clock_to_timespec(clock_now_ns() + SENSOR_EVERY_NS);
		pthread_mutex_lock(&s->worker.lock);
		if (!s->worker.stop)
			pthread_cond_timedwait(&s->worker.wake, &s->worker.lock, &until);
	}
	pthread_mutex_unlock(&s->worker.lock);
	return NULL;
}

int sensor_start(const struct gpu_backend *backend, struct gpu *gpu, unsigned index,
		 struct arbitration *arbitration, struct sensor **ret, struct error *err)
{
	struct sensor *s = calloc(1, sizeof(*s));
	if (!s)
		return error_set_errno(
			err, ENOMEM,
			"can't start to read the GPU time of processes (feedback_sensor = nvml)");
	s->backend = backend;
	s->gpu = gpu;
	s->index = index;
	s->arbitration = arbitration;
	int r = worker_start(&s->worker, "sensor", run, s, err);
	if (r < 0) {
		free(s);
		return r;
	}
	*ret = s;
	return 0;
}

uint64_t sensor_failures(const struct sensor *s)
{
	return s ? atomic_load(&s->failures) : 0;
}

struct sensor *sensor_stop(struct sensor *s)
{
	if (!s)
		return NULL;
	worker_stop(&s->worker);
	free(s);
	return NULL;
}
