/* Forward-progress cases of two processes, each in its own tenant. */
#include "progress.h"

#include <pthread.h>
#include <signal.h>

#define IPC_KERNELS 5

/* Polls, a role's half of a hand-shake; the watchdog ends what never comes. */
static void await(_Atomic uint32_t *word, uint32_t least)
{
	while (atomic_load(word) < least)
		nap_ns(NSEC_PER_MSEC / 50);
}

/* ---- events of one process that the other's stream waits for ---- */

static CUevent own_event, other_event;

static void exchange_events(struct progress *p)
{
	int me = p->role;

	GPU_DO(event_create, &own_event, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS);
	GPU_DO(ipc_get_event, &p->share->event[me], own_event);
	p->share->event_step[me] = 1;
	await(&p->share->event_step[!me], 1);
	GPU_DO(ipc_open_event, &other_event, p->share->event[!me]);
	p->share->event_step[me] = 2;
	await(&p->share->event_step[!me], 2);
	progress_sign(p);
}

static void burn_some(struct progress *p)
{
	for (int i = 0; i < IPC_KERNELS; i++)
		gpu_burn(p->stream, p->kernel_us);
}

void progress_ipc_first(struct progress *p)
{
	exchange_events(p);
	for (unsigned int rep = 1; rep <= p->reps; rep++) {
		uint64_t begin_ns = now_ns();

		burn_some(p);
		GPU_DO(event_record, own_event, p->stream);
		p->share->round[0] = rep;
		await(&p->share->round[1], rep);
		GPU_DO(stream_wait_event, p->stream, other_event, 0);
		burn_some(p);
		GPU_DO(stream_sync, p->stream);
		progress_rep(p, begin_ns, 0);
	}
}

void progress_ipc_second(struct progress *p)
{
	exchange_events(p);
	for (unsigned int rep = 1; rep <= p->reps; rep++) {
		uint64_t begin_ns;

		await(&p->share->round[0], rep);
		begin_ns = now_ns();
		GPU_DO(stream_wait_event, p->stream, other_event, 0);
		burn_some(p);
		GPU_DO(event_record, own_event, p->stream);
		p->share->round[1] = rep;
		progress_rep(p, begin_ns, 0);
	}
	GPU_DO(stream_sync, p->stream);
}

/* ---- kernels of two tenants that spin for each other ---- */

void progress_spin(struct progress *p)
{
	uint32_t size = sizeof(p->share->flag);
	unsigned int pairs = p->reps * SPINS;
	CUdeviceptr flags, given_up_at;
	void *given_up;
	int me = p->role;

	if (pairs > 4096)
		progress_fail(p, "too many repetitions for the flags");
	GPU_DO(host_register, p->share->flag, size,
	       CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
	GPU_DO(host_pointer, &flags, p->share->flag, 0);
	GPU_DO(host_alloc, &given_up, 4096, CU_MEMHOSTALLOC_DEVICEMAP);
	GPU_DO(host_pointer, &given_up_at, given_up, 0);
	*(volatile uint32_t *)given_up = 0;

	/* Both there: else the first kernels' 5 s would run while the other starts. */
	p->share->event_step[me] = 1;
	await(&p->share->event_step[!me], 1);
	for (unsigned int pair = 0; pair < pairs;) {
		uint64_t begin_ns = now_ns();

		for (int i = 0; i < SPINS; i++, pair++) {
			CUdeviceptr mine = flags + (CUdeviceptr)&p->share->flag[me][pair] -
					   (CUdeviceptr)p->share->flag;
			CUdeviceptr peer = flags + (CUdeviceptr)&p->share->flag[!me][pair] -
					   (CUdeviceptr)p->share->flag;

			gpu_burn(p->stream, p->kernel_us);
			gpu_exchange(p->stream, mine, peer, given_up_at);
		}
		GPU_DO(stream_sync, p->stream);
		if (*(volatile uint32_t *)given_up)
			progress_fail(p, "a kernel spun for 5 s in vain");
		progress_rep(p, begin_ns, 0);
	}
}

/* ---- a lease holder that is stopped ---- */

#define STOP_NS (300 * NSEC_PER_MSEC)
#define HELD_NS (3 * NSEC_PER_MSEC) /* a launch that takes longer waits for the other's lease */

/* The one that is stopped, again and again, until the other is through. */
void progress_stopped(struct progress *p)
{
	while (!p->share->is_over) {
		uint64_t begin_ns = now_ns();

		gpu_burn(p->stream, 1000);
		gpu_burn(p->stream, 1000);
		GPU_DO(stream_sync, p->stream);
		p->share->kernels[0] += 2;
		if (p->done < p->reps)
			progress_rep(p, begin_ns, 0);
		else
			progress_sign(p);
	}
}

static _Atomic uint64_t launching_since_ns; /* 0: not in a launch */

static void *work(void *arg)
{
	struct progress *p = arg;

	while (!p->share->is_over) {
		launching_since_ns = now_ns();
		gpu_burn(p->stream, 1000);
		launching_since_ns = 0;
		GPU_DO(stream_sync, p->stream);
		p->share->kernels[1]++;
	}
	return NULL;
}

/* Until our launch is held up, so the other one has the lease; or not for long, where there are none. */
static void await_other_holds(void)
{
	uint64_t begin_ns = now_ns();

	for (;;) {
		uint64_t since_ns = launching_since_ns, now = now_ns();

		if ((since_ns && now - since_ns > HELD_NS) || now - begin_ns > NSEC_PER_SEC)
			return;
		nap_ns(NSEC_PER_MSEC / 5);
	}
}

/* Stops the other 300 ms in its lease. The time: until a kernel of our own ends. */
static void stop_once(struct progress *p)
{
	uint32_t own = p->share->kernels[1], others;
	uint64_t begin_ns = now_ns(), first_ns = 0;

	if (kill(p->share->pid[0], SIGSTOP) != 0)
		progress_fail(p, "the other is gone");
	while (now_ns() - begin_ns < STOP_NS) {
		if (!first_ns && p->share->kernels[1] != own)
			first_ns = now_ns();
		nap_ns(NSEC_PER_MSEC / 10);
	}
	own = p->share->kernels[1] - own;
	others = p->share->kernels[0];
	kill(p->share->pid[0], SIGCONT);
	if (!first_ns)
		progress_fail(p, "nothing of ours ran while the other was stopped for 300 ms");
	/* As if the repetition had begun that much earlier: its length is until first_ns. */
	progress_rep(p, now_ns() - (first_ns - begin_ns), own);
	await(&p->share->kernels[0], others + 1);
	progress_sign(p);
}

void progress_stopper(struct progress *p)
{
	pthread_t worker;

	p->extra_label = "own kernels of 1 ms in the 300 ms";
	await(&p->share->kernels[0], 1);
	if (pthread_create(&worker, NULL, work, p) != 0)
		progress_fail(p, "no thread");
	for (unsigned int rep = 0; rep < p->reps; rep++) {
		nap_ns((20 + rep * 7 % 30) * NSEC_PER_MSEC);
		await_other_holds();
		stop_once(p);
	}
	p->share->is_over = 1;
	pthread_join(worker, NULL);
}
