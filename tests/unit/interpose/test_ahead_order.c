/*
 * Four threads make calls at random, on streams that they share, while the lease comes and goes; some of the
 * calls may be queued, some never. What reaches the driver must be each thread's calls in the order it
 * made them, and nothing from behind a barrier before what was called in front of it; and when a call that
 * is not quiet returns, all that its thread called before must have reached the driver.
 */
#include "queueing.h"

#define THREADS 4
#define CALLS 20000
#define CALLS_OF_PHASE 500
#define EVENTS_OF_THREAD (EVENTS / THREADS)

struct called {
	enum noted_kind kind;
	CUstream stream;
	uint64_t what;
};

static struct thread {
	pthread_t thread;
	uint32_t number;
	uint64_t random;
	struct called called[CALLS];
	uint32_t count; /* of called */
	uint32_t late;  /* calls that had not come when a later one returned */
} threads[THREADS];

static pthread_barrier_t barrier;
static _Atomic bool is_over;
static _Atomic uint32_t queued;

/* The calls of one thread that have reached the driver. */
static uint32_t count_noted(uint32_t who);

static CUstream stream_of(uint64_t random)
{
	unsigned int i = (unsigned int)(random % 5);

	return fake_stream(i ? i + 1 : 0); /* the legacy one, or one of four */
}

/* Who and the number of the call, as a memset's value, a copy's length and a kernel's parameter. */
static uint32_t mark_of(const struct thread *t)
{
	return t->number << 16 | t->count;
}

static void call_at_random(struct thread *t)
{
	uint64_t r = test_random(&t->random);
	CUstream stream = stream_of(r >> 8);
	CUevent event = event_of(
		(unsigned int)(t->number * EVENTS_OF_THREAD + (r >> 16) % EVENTS_OF_THREAD));
	struct called c = { NOTED_KERNEL, stream, mark_of(t) };
	CUresult result;

	switch (r % 100) {
	case 0 ... 49: result = call_kernel(stream, t->number, c.what); break;
	case 50 ... 59: result = call_kernel_packed(stream, t->number, c.what); break;
	case 60 ... 64: result = call_kernel_configured(stream, t->number, c.what); break;
	case 65 ... 66: /* seldom proved */
		result = call_kernel_of((unsigned int)(r >> 24) % 4096 + 200, LEGACY, stream,
					t->number, c.what);
		break;
	case 67 ... 74:
		c.kind = NOTED_SET;
		result = call_set(stream, KNOWN_MEMORY, (uint32_t)c.what, 64);
		break;
	case 75 ... 79:
		c.kind = NOTED_COPY;
		result = call_copy(stream, KNOWN_MEMORY, KNOWN_MEMORY, c.what + 1);
		c.what++;
		break;
	case 80 ... 89:
		c.kind = NOTED_RECORD;
		c.what = (uintptr_t)event;
		result = call_record(event, stream);
		break;
	default:
		c.kind = NOTED_WAIT;
		c.what = (uintptr_t)event;
		result = call_wait(stream, event);
		break;
	}
	assert_int_equal(result, CUDA_SUCCESS);
	t->called[t->count++] = c;
	if (ahead_is_pending())
		atomic_fetch_add(&queued, 1);
	if (r >> 32 & 1)
		call_query(event);
	if ((r >> 33) % 64 == 0) {
		call_synchronize();
		t->late += t->count - count_noted(t->number);
	}
	if ((r >> 40) % 512 == 0) {
		flight_capture_begins();
		ahead_flush("test");
		t->late += t->count - count_noted(t->number);
		flight_capture_ended();
	}
}

static void *run_thread(void *context)
{
	struct thread *t = context;

	use_context(FAKE_CONTEXT);
	while (t->count < CALLS) {
		if (t->count % CALLS_OF_PHASE == 0)
			pthread_barrier_wait(&barrier);
		call_at_random(t);
	}
	return NULL;
}

static void *turn_leases(void *unused)
{
	static const enum lease_state states[] = { LEASE_GO,   LEASE_CLOSING, LEASE_STOP,
						   LEASE_STOP, LEASE_FREE,    LEASE_GO,
						   LEASE_STOP };
	uint64_t random = 99;

	while (!atomic_load(&is_over)) {
		uint64_t r = test_random(&random);
		enum lease_state state = states[r % (sizeof(states) / sizeof(states[0]))];
		bool is_held = state == LEASE_STOP || state == LEASE_CLOSING;
		fake_guest_set_lease(state);
		usleep((unsigned int)(r >> 16) % (is_held ? 1000 : 100));
	}
	fake_guest_set_lease(LEASE_GO);
	return NULL;
}

/* ---- what came ---- */

static int thread_of(const struct noted *n)
{
	for (unsigned int e = 0; e < EVENTS; e++)
		if ((n->kind == NOTED_RECORD || n->kind == NOTED_WAIT) &&
		    n->what == (uintptr_t)event_of(e))
			return (int)(e / EVENTS_OF_THREAD);
	switch (n->kind) {
	case NOTED_KERNEL: return (int)n->who;
	case NOTED_SET: return (int)(n->what >> 16);
	case NOTED_COPY: return (int)((n->what - 1) >> 16);
	default: return -1;
	}
}

static uint32_t noted_at_start;

static uint32_t count_noted(uint32_t who)
{
	uint32_t end = noted_count(), count = 0;

	for (uint32_t i = noted_at_start; i < end; i++)
		count += thread_of(&noted[i]) == (int)who;
	return count;
}

static void assert_order(void)
{
	uint32_t seen[THREADS] = { 0 }, phase = 0;

	for (uint32_t i = noted_at_start; i < noted_count(); i++) {
		const struct noted *n = &noted[i];
		int who = thread_of(n);
		if (who < 0)
			continue;
		assert_true(who < THREADS && seen[who] < threads[who].count);
		const struct called *c = &threads[who].called[seen[who]];
		assert_int_equal(n->kind, c->kind);
		assert_int_equal(n->what, c->what);
		assert_ptr_equal(n->stream, c->stream);
		assert_ptr_equal(n->context, FAKE_CONTEXT);
		assert_true(n->is_whole);
		uint32_t its_phase = seen[who]++ / CALLS_OF_PHASE;
		assert_true(its_phase >= phase);
		phase = its_phase;
	}
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(seen[i], CALLS);
		assert_int_equal(threads[i].late, 0);
	}
}

static void test_the_order_is_the_programs(void **state)
{
	pthread_t leases;

	for (unsigned int i = 0; i < 6; i++)
		if (i != 1)
			prove(fake_stream(i));
	call_kernel_packed(fake_stream(2), 0, 0);
	call_kernel_configured(fake_stream(2), 0, 0);
	noted_at_start = noted_count();
	pthread_barrier_init(&barrier, NULL, THREADS);
	assert_int_equal(pthread_create(&leases, NULL, turn_leases, NULL), 0);
	for (uint32_t i = 0; i < THREADS; i++) {
		threads[i].number = i;
		threads[i].random = 0x9e3779b97f4a7c15ULL * (i + 1);
		assert_int_equal(pthread_create(&threads[i].thread, NULL, run_thread, &threads[i]),
				 0);
	}
	for (uint32_t i = 0; i < THREADS; i++)
		pthread_join(threads[i].thread, NULL);
	atomic_store(&is_over, true);
	pthread_join(leases, NULL);
	assert_int_equal(ahead_settle("test"), CUDA_SUCCESS);
	print_message("%u of %u calls ended with something queued\n", atomic_load(&queued),
		      THREADS * CALLS);
	assert_order();
	assert_true(atomic_load(&queued) > CALLS / 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		queueing_test(test_the_order_is_the_programs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
