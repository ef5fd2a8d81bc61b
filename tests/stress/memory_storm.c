/*
 * memory_storm: 8 processes of 8 threads get memory and put it back at random, first in each way that
 * there is alone (ways.c has the table), then in all that are charged at once, then in all. At no moment
 * may the card hold more for the tenant than its quota, nor may the tenant's own count of what it was
 * granted, the ledger's slots or the daemon's list be more; at rest the ledger has all that the card
 * holds; and when all is put back, each of these is exactly zero.
 *
 * What is charged late (see ways.h) may pass the quota by as much as is held of it: that is what the
 * design promises, for no call asks before code is loaded. So the bound is quota plus the most that was
 * ever held of it at a time, and at rest a request for more than is left is refused.
 *
 *     memory_storm [--ops N] [--seed N] [--way NAME]     10^6 steps and seed 1 when not said
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu.h"
#include "stage.h"
#include "ways.h"

#define PROCESSES 8
#define THREADS 8
#define HELD 12
#define QUOTA (3 * GIB)
#define CONTEXT (64 * MIB)
#define PAGE (2 * MIB)
#define LOOK_MS 200 /* between the daemon's looks at what no call names */

_Static_assert(PROCESSES *THREADS == WAYS_PARCELS, "a parcel a thread");

/* What is asked of the processes, one after the other; round and round, then the end. */
enum step { STEP_STORM, STEP_ASK, STEP_PUT_BACK, STEPS, STEP_LEAVE = 1 << 20, STEP_EXIT };

struct board {
	_Atomic uint32_t step, arrived; /* STEPS * round + step; threads that have done it */
	_Atomic uint64_t ops, limit, rows;
	_Atomic uint64_t held, most, over; /* granted at once; times that it was over the quota */
	_Atomic uint64_t granted, refused;
	_Atomic uint64_t asked_bytes; /* STEP_ASK: 0 for nothing */
	_Atomic uint32_t asked_result;
	uint64_t seed;
	struct ways_board ways;
};

/* ---- a process of the tenant ---- */

static struct board *board;
static struct ways_process process;
static pthread_barrier_t all_threads;

struct storm_thread {
	pthread_t thread;
	struct ways_thread way;
	struct held held[HELD];
};

static bool put(struct storm_thread *t, struct held *h)
{
	atomic_fetch_sub(&board->held, h->bytes);
	uint64_t bytes = h->bytes;
	if (!h->way->put(&t->way, h)) {
		atomic_fetch_add(&board->held, bytes);
		return false;
	}
	memset(h, 0, sizeof(*h));
	return true;
}

static void get(struct storm_thread *t, struct held *h)
{
	const struct way *way = ways_pick(&t->way, atomic_load(&board->rows));
	CUresult result = way->get(&t->way, h);

	if (result == CUDA_ERROR_OUT_OF_MEMORY || result == CUDA_ERROR_NOT_READY) {
		atomic_fetch_add(&board->refused, result == CUDA_ERROR_OUT_OF_MEMORY);
		memset(h, 0, sizeof(*h));
		usleep(100); /* the others get on: refusals are cheap, and would be most of the steps */
		return;
	}
	gpu_check(result, way->name);
	h->way = way;
	uint64_t held = atomic_fetch_add(&board->held, h->bytes) + h->bytes;
	uint64_t most = atomic_load(&board->most);
	while (held > most && !atomic_compare_exchange_weak(&board->most, &most, held))
		;
	atomic_fetch_add(&board->over, held > QUOTA);
	atomic_fetch_add(&board->granted, 1);
}

/* A place that holds something, or an empty one, if there is such a one; else any. */
static struct held *pick_place(struct storm_thread *t, bool is_held)
{
	struct held *first = &t->held[pick(&t->way, HELD)];

	for (struct held *h = first; h < t->held + HELD; h++)
		if ((h->way != NULL) == is_held)
			return h;
	for (struct held *h = t->held; h < first; h++)
		if ((h->way != NULL) == is_held)
			return h;
	return first;
}

static void trim_once(struct storm_thread *t)
{
	GPU_DO(cuStreamSynchronize(t->way.stream));
	if (pthread_barrier_wait(&all_threads) == PTHREAD_BARRIER_SERIAL_THREAD)
		ways_trim(&process);
	pthread_barrier_wait(&all_threads);
}

/*
 * As many tries to put back as to get: where most are refused, what is held changes all the same. At the
 * end trimmed, so that a request at rest finds no more room than is seen.
 */
static void storm(struct storm_thread *t)
{
	while (atomic_fetch_add(&board->ops, 1) < atomic_load(&board->limit)) {
		struct held *h = pick_place(t, pick(&t->way, 2));
		if (h->way)
			put(t, h);
		else
			get(t, h);
		if (pick(&t->way, 100) == 0)
			GPU_DO(cuStreamSynchronize(t->way.stream));
	}
	trim_once(t);
}

/* In turns: what another has open, he is putting back as well. */
static void put_all_back(struct storm_thread *t)
{
	bool is_empty;

	do {
		is_empty = true;
		for (unsigned i = 0; i < HELD; i++)
			is_empty &= !t->held[i].way || put(t, &t->held[i]);
		if (!is_empty)
			sleep_ms(1);
	} while (!is_empty);
	trim_once(t);
}

/* One thread of all: does the ledger know of everything that is held? */
static void ask(const struct storm_thread *t)
{
	CUdeviceptr ptr;

	if (t->way.number != 0 || !atomic_load(&board->asked_bytes))
		return;
	CUresult result = cuMemAlloc_v2(&ptr, atomic_load(&board->asked_bytes));
	if (result == CUDA_SUCCESS)
		GPU_DO(cuMemFree_v2(ptr));
	atomic_store(&board->asked_result, (uint32_t)result);
}

static uint32_t wait_for(uint32_t step)
{
	uint32_t now;

	while ((now = atomic_load(&board->step)) < step)
		sleep_ms(1);
	return now;
}

static void *run_thread(void *context)
{
	struct storm_thread *t = context;

	GPU_DO(cuCtxSetCurrent(process.primary));
	t->way.stream = gpu_stream();
	for (uint32_t next = STEPS; wait_for(next) < STEP_LEAVE; next++) {
		switch (next % STEPS) {
		case STEP_STORM: storm(t); break;
		case STEP_ASK: ask(t); break;
		default: put_all_back(t);
		}
		atomic_fetch_add(&board->arrived, 1);
	}
	GPU_DO(cuStreamDestroy_v2(t->way.stream));
	return NULL;
}

static int be_process(char **argv)
{
	static struct storm_thread threads[THREADS];
	CUmemPoolProps props = {
		.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
	};

	board = open_board(argv[2], sizeof(*board));
	process.number = (uint32_t)atoi(argv[3]);
	process.fd_out = atoi(argv[4]);
	process.fd_in = atoi(argv[5]);
	process.board = &board->ways;
	process.primary = gpu_start();
	GPU_DO(cuMemPoolCreate(&process.pool, &props));
	atomic_fetch_add(&board->held, CONTEXT);
	pthread_barrier_init(&all_threads, NULL, THREADS);
	for (unsigned i = 0; i < THREADS; i++) {
		uint32_t number = process.number * THREADS + i;
		threads[i].way.process = &process;
		threads[i].way.number = number;
		threads[i].way.random = (board->seed * WAYS_PARCELS + number + 1) *
					0x9e3779b97f4a7c15ULL;
		pthread_create(&threads[i].thread, NULL, run_thread, &threads[i]);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i].thread, NULL);
	GPU_DO(cuMemPoolDestroy(process.pool));
	GPU_DO(cuDevicePrimaryCtxRelease_v2(0));
	atomic_fetch_add(&board->arrived, 1);
	wait_for(STEP_EXIT);
	return 0;
}

/* ---- the watcher ---- */

struct round {
	const char *name;
	uint64_t rows, ops;
	bool is_late, is_never; /* some of it is charged late; none of it at all */
};

struct seen {
	uint64_t slots, card, list, samples, missed;
};

static uint64_t list_used(struct stage *s)
{
	json_t *list = stage_list(s);
	uint64_t used = (uint64_t)json_integer_value(
		json_object_get(stage_find_device(list, "storm"), "memory_used_bytes"));

	json_decref(list);
	return used;
}

static void raise_to(uint64_t *most, uint64_t value)
{
	if (value > *most)
		*most = value;
}

static void look(struct stage *s, struct seen *seen)
{
	uint64_t slots = stage_slots_used(&s->tenant[0]);

	raise_to(&seen->card, stage_card_used(s, 0));
	if (slots == UINT64_MAX)
		seen->missed++;
	else
		raise_to(&seen->slots, slots);
	if (seen->samples++ % 100 == 0)
		raise_to(&seen->list, list_used(s));
}

/* Ends when a process has ended: none should before the last step. */
static void do_step(struct stage *s, uint32_t step, uint32_t threads, struct seen *seen)
{
	atomic_store(&board->arrived, 0);
	atomic_store(&board->step, step);
	while (atomic_load(&board->arrived) < threads) {
		int status;
		if (seen)
			look(s, seen);
		pid_t pid = waitpid(-1, &status, WNOHANG);
		if (pid > 0)
			give_up("process %d ended early: status 0x%x", (int)pid, (unsigned)status);
		usleep(500);
	}
}

static double in_mib(uint64_t bytes)
{
	return (double)bytes / (double)MIB;
}

/* What all are to say when it rests: a census or two later, as far as it was no call's. */
static bool is_rest(struct stage *s, uint64_t bytes, uint64_t ret_said[3])
{
	for (int i = 0; i < 300; i++) {
		ret_said[0] = stage_slots_used(&s->tenant[0]);
		ret_said[1] = list_used(s);
		ret_said[2] = stage_card_used(s, 0);
		if (ret_said[0] == bytes && ret_said[1] == bytes && ret_said[2] == bytes)
			return true;
		sleep_ms(10);
	}
	return false;
}

static void check_rest(struct stage *s, uint64_t bytes, const char *name)
{
	uint64_t said[3];
	bool is_met = is_rest(s, bytes, said);

	bar(name, is_met, "ledger %llu, daemon %llu, card %llu bytes; expected %llu",
	    (unsigned long long)said[0], (unsigned long long)said[1], (unsigned long long)said[2],
	    (unsigned long long)bytes);
}

/*
 * All that the card holds is charged: what was no call's after two looks of the daemon, so long it has to
 * stay so. Returns what is charged of what is held: what the library measured around a call
 * may be too much.
 */
static uint64_t check_covered(struct stage *s, const struct round *r)
{
	uint64_t list = 0, card = 1;
	int wanted = r->is_late ? 2 * LOOK_MS / 10 + 20 : 1;
	char name[96];

	snprintf(name, sizeof(name), "memory_storm.covered (%s)", r->name);
	for (int i = 0, good = 0; i < 300 && good < wanted; i++) {
		card = stage_card_used(s, 0);
		list = list_used(s);
		good = list >= card ? good + 1 : 0;
		sleep_ms(10);
	}
	bar(name, list >= card, "charged %.1f MiB, the card holds %.1f", in_mib(list), in_mib(card));
	return list < card ? list : card;
}

static void begin_round(const struct round *r)
{
	board->ops = board->granted = board->refused = board->over = 0;
	board->most = board->held;
	board->ways.late_most = board->ways.late_bytes;
	board->rows = r->rows;
	board->limit = r->ops;
}

/* Never over the quota, and it came so far that something was refused. */
static void check_storm(const struct round *r, const struct seen *seen)
{
	uint64_t most = r->is_never ? PROCESSES * CONTEXT : QUOTA + board->ways.late_most;
	bool is_pressed = r->is_never || r->is_late || board->refused;
	char name[96];

	snprintf(name, sizeof(name), "memory_storm.quota (%s)", r->name);
	bar(name,
	    seen->card <= most && seen->slots <= most && seen->list <= most && !board->over &&
		    is_pressed,
	    "at most %.1f MiB on the card, %.1f in the ledger, %.1f by the daemon, %.1f by own "
	    "count "
	    "(over %llu times) of %.1f; %llu steps, %llu granted, %llu refused, %llu samples",
	    in_mib(seen->card), in_mib(seen->slots), in_mib(seen->list), in_mib(board->most),
	    (unsigned long long)board->over, in_mib(most), (unsigned long long)r->ops,
	    (unsigned long long)board->granted, (unsigned long long)board->refused,
	    (unsigned long long)seen->samples);
}

static void check_asked(struct stage *s, const struct round *r, uint32_t step, uint64_t used)
{
	char name[96];

	board->asked_bytes = used < QUOTA ? QUOTA - used + PAGE : PAGE;
	do_step(s, step, PROCESSES * THREADS, NULL);
	snprintf(name, sizeof(name), "memory_storm.rest_refused (%s)", r->name);
	bar(name, board->asked_result == CUDA_ERROR_OUT_OF_MEMORY, "%.1f MiB of %.1f left: %u",
	    in_mib(board->asked_bytes), in_mib(used < QUOTA ? QUOTA - used : 0),
	    board->asked_result);
}

static void do_round(struct stage *s, const struct round *r)
{
	static uint32_t step;
	struct seen seen = { 0 };
	char name[96];

	step += STEPS;
	begin_round(r);
	do_step(s, step + STEP_STORM, PROCESSES * THREADS, &seen);
	check_storm(r, &seen);
	check_asked(s, r, step + STEP_ASK, check_covered(s, r));
	do_step(s, step + STEP_PUT_BACK, PROCESSES * THREADS, NULL);
	snprintf(name, sizeof(name), "memory_storm.all_put_back (%s)", r->name);
	check_rest(s, PROCESSES * CONTEXT, name);
}

/* Half of the steps go to the ways alone, the rest to the mixes. */
static void do_rounds(struct stage *s, uint64_t ops, const char *only)
{
	uint64_t at_once = 0, each = ops / 2 / ways_count, left = ops;

	for (unsigned i = 0; i < ways_count; i++) {
		const struct way *w = &ways[i];
		at_once |= (uint64_t)(w->charge != WAY_LATE) << i;
		if (only && strcmp(only, w->name))
			continue;
		do_round(s, &(struct round){ w->name, 1ULL << i, only ? ops : each,
					     w->charge == WAY_LATE, w->charge == WAY_NEVER });
		left -= each;
	}
	if (only)
		return;
	do_round(s,
		 &(struct round){ "all that are charged at once", at_once, left / 2, false, false });
	do_round(s,
		 &(struct round){ "all", (1ULL << ways_count) - 1, left - left / 2, true, false });
}

/* ---- main ---- */

static void start_processes(struct stage *s, char *program, int fd, pid_t *ret_pids)
{
	struct stage_tenant *tenant = stage_add_tenant(s, "storm", QUOTA, 0, 0);
	char text[4][16];
	int ends[2];

	stage_watch(tenant);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends) < 0)
		give_up("no socket");
	snprintf(text[0], sizeof(text[0]), "%d", fd);
	snprintf(text[2], sizeof(text[2]), "%d", ends[0]);
	snprintf(text[3], sizeof(text[3]), "%d", ends[1]);
	for (int i = 0; i < PROCESSES; i++) {
		snprintf(text[1], sizeof(text[1]), "%d", i);
		char *const args[] = { program, (char *)"process", text[0], text[1],
				       text[2], text[3],           NULL };
		ret_pids[i] = stage_spawn(s, tenant, args);
	}
	close(ends[0]);
	close(ends[1]);
	while (atomic_load(&board->held) < PROCESSES * CONTEXT)
		sleep_ms(1);
}

static void end_processes(struct stage *s, const pid_t *pids)
{
	do_step(s, STEP_LEAVE, PROCESSES, NULL);
	check_rest(s, 0, "memory_storm.contexts_released");
	atomic_store(&board->step, STEP_EXIT);
	for (int i = 0; i < PROCESSES; i++) {
		int status = 0;
		waitpid(pids[i], &status, 0);
		bar("memory_storm.exit", status == 0, "process %d: status 0x%x", i,
		    (unsigned)status);
	}
	check_rest(s, 0, "memory_storm.all_exited");
}

int main(int argc, char **argv)
{
	static struct stage stage;
	const char *only = NULL;
	uint64_t ops = 1000000;
	pid_t pids[PROCESSES];
	char config[96];
	int fd;

	if (argc == 6 && !strcmp(argv[1], "process"))
		return be_process(argv);
	board = shared_board(sizeof(*board), &fd);
	board->seed = 1;
	for (int i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--ops"))
			ops = strtoull(argv[i + 1], NULL, 10);
		else if (!strcmp(argv[i], "--seed"))
			board->seed = strtoull(argv[i + 1], NULL, 10);
		else if (!strcmp(argv[i], "--way"))
			only = argv[i + 1];
		else
			give_up("%s: no such option", argv[i]);
	}
	snprintf(config, sizeof(config), "census_interval = %dms\n", LOOK_MS);
	stage_start(&stage, "memory = 16 GiB\ncontext = 64 MiB\n", config);
	uint64_t begin = now_ns();
	start_processes(&stage, argv[0], fd, pids);
	do_rounds(&stage, ops, only);
	end_processes(&stage, pids);
	printf("%llu steps, seed %llu, %.1f s\n", (unsigned long long)ops,
	       (unsigned long long)board->seed, (double)(now_ns() - begin) / 1e9);
	stage_stop(&stage);
	return bar_status();
}
