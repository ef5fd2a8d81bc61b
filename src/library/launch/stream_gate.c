#include "library/launch/stream_gate.h"

#include <string.h>
#include <sys/mman.h>

#include "library/state/bell.h"
#include "library/launch/flight/estimate.h"
#include "library/state/helper.h"
#include "library/loader/real.h"
#include "library/memory/swap_hold.h"
#include "library/state/thread.h"

#define MOST 256
#define NAP_NS (50 * NS_PER_MS)
/* The helper, which looks after the daemon, may be in a call of the driver that waits for the gates. */
#define BEAT_PATIENCE_NS (3 * NS_PER_S)
#define PAGE 65536 /* the largest page there is */
#define REGISTER_PORTABLE_MAPPED 3
#define WAIT_GEQ 0

_Atomic uint32_t stream_gate_closed;

/*
 * Who closes a gate holds `closing` around calls of the driver, which may wait for a thread that waits for the gates. So
 * opening takes only `lock`, inside which nobody calls the driver. `closing` comes first.
 */
static struct {
	struct sys_lock closing; /* of these: */
	bool has_thread;
	CUcontext context; /* in which the page is known to the GPU; NULL: in none */
	CUdeviceptr address;

	struct sys_lock lock; /* of these, and of changes of stream_gate_closed: */
	bool is_off;          /* the driver can't, or the process ends */
	uint32_t held;        /* launches behind the gates */
	uint64_t held_ns;
	uint32_t passing; /* threads that were let through, and are not back from the driver */
	struct region_slot_device *slot; /* that says `waiting` */
	const struct region_slot *of;
} gate;
/* What the GPU looks at: for each device the number of the last gate that was opened. */
static _Atomic uint32_t *_Atomic page;
static _Atomic uint32_t closed_change; /* futex of the thread: counts the times that gates were closed */

static bool is_leased(int index)
{
	const struct region_control_device *c = guest_control_device(index);
	enum lease_state state = lease_state_of(atomic_load(&c->lease));

	return state == LEASE_FREE || state == LEASE_PACED ||
	       (state == LEASE_GO && guest_has_turn(c));
}

/* Gates would stay closed for nobody, or be in the way: of the daemon that parks the process. */
static bool is_out_of_place(int index)
{
	return is_leased(index) || atomic_load(&guest.daemon_lost) ||
	       swap_order_of(atomic_load(&atomic_load(&guest.control)->swap)) != SWAP_ORDER_IN;
}

/* Holds `lock`. */
static void open_gates(void)
{
	uint32_t closed = atomic_load(&stream_gate_closed);

	if (!closed)
		return;
	struct flight_device *f = &flight_devices[closed - 1];
	uint32_t number = atomic_load(&f->gates_opened) + 1;

	if (!atomic_load(&f->shows_busy))
		atomic_store_explicit(&f->busy_since_ns, sys_now_ns(), memory_order_relaxed);
	flight_show_busy(guest_slot_device((int)closed - 1), f, true);
	/* From here on they are as any thread that has passed. */
	atomic_fetch_add(&gate.slot->launching, gate.passing);
	gate.passing = 0;
	atomic_store(&f->gates_opened, number);
	atomic_store(atomic_load(&page) + (closed - 1), number);
	/* Of a daemon before: its pages stay, see guest.h. */
	atomic_fetch_sub(&gate.slot->waiting, 1);
	atomic_store(&f->held_ns, 0);
	gate.held = 0;
	gate.held_ns = 0;
	atomic_store(&stream_gate_closed, 0);
	helper_wake();
}

void stream_gate_open_all(void)
{
	WITH_LOCK(&gate.lock);
	open_gates();
}

/*
 * Its turn has come, or there is a new daemon, which does not know of the demand that the old one's slot tells of. As a
 * thread at the gate it raises `launching` before it reads the lease.
 */
static bool open_if_due(int index)
{
	WITH_LOCK(&gate.lock);
	struct region_slot_device *slot = gate.slot;

	if (atomic_load(&stream_gate_closed) != (uint32_t)index + 1)
		return true;
	atomic_fetch_add(&slot->launching, 1);
	if (is_out_of_place(index) || atomic_load(&guest.slot) != gate.of)
		open_gates();
	atomic_fetch_sub(&slot->launching, 1);
	return !atomic_load(&stream_gate_closed);
}

static void *open_with_lease(void *unused)
{
	uint64_t still_ns = 0;
	uint32_t seen_beat = 0;

	(void)unused;
	for (;;) {
		uint32_t change = atomic_load(&closed_change);
		uint32_t closed = atomic_load(&stream_gate_closed);

		if (!closed) {
			sys_futex_wait(&closed_change, change, NS_PER_S, false);
			still_ns = 0;
			continue;
		}
		const struct region_control *control = atomic_load(&guest.control);
		const _Atomic uint32_t *lease = &control->device[closed - 1].lease;
		uint32_t word = atomic_load(lease);
		uint32_t beat = atomic_load_explicit(&control->heartbeat, memory_order_relaxed);
		if (open_if_due((int)closed - 1))
			continue;
		still_ns = beat == seen_beat ? still_ns : 0;
		seen_beat = beat;
		if (still_ns > BEAT_PATIENCE_NS)
			stream_gate_open_all();
		else
			still_ns += sys_futex_nap(lease, word, NAP_NS, true);
	}
	return NULL;
}

static bool is_off(void)
{
	WITH_LOCK(&gate.lock);
	return gate.is_off;
}

static void turn_off(void)
{
	WITH_LOCK(&gate.lock);
	gate.is_off = true;
}

/* A page that the GPU may look at, and that a fork does not move under it. Holds `closing`. */
static bool make_page(void)
{
	if (atomic_load(&page))
		return true;
	void *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return false;
	if (madvise(p, PAGE, MADV_DONTFORK) != 0) {
		munmap(p, PAGE);
		return false;
	}
	atomic_store(&page, p);
	return true;
}

/* Makes the page known to the GPU in the current context. */
static bool register_page(void)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	void *p = (void *)atomic_load(&page);
	CUresult result;

	if (!real.cuStreamWaitValue32_v2 || !real.cuMemHostRegister_v2 ||
	    !real.cuMemHostGetDevicePointer_v2)
		return false;
	/* Else it would break another thread's capture. */
	if (real.cuThreadExchangeStreamCaptureMode)
		real.cuThreadExchangeStreamCaptureMode(&mode);
	result = real.cuMemHostRegister_v2(p, PAGE, REGISTER_PORTABLE_MAPPED);
	if (result == CUDA_SUCCESS || result == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED)
		result = real.cuMemHostGetDevicePointer_v2(&gate.address, p, 0);
	if (real.cuThreadExchangeStreamCaptureMode)
		real.cuThreadExchangeStreamCaptureMode(&mode);
	return result == CUDA_SUCCESS;
}

/* Holds `closing`. */
static bool prepare(CUcontext context)
{
	if (gate.context == context)
		return true;
	if (gate.context || is_off())
		return false;
	if (!make_page() || !register_page() ||
	    (!gate.has_thread && !thread_create(open_with_lease))) {
		turn_off();
		return false;
	}
	gate.has_thread = true;
	gate.context = context;
	return true;
}

/* Does its call return without looking at the GPU? A copy that waits for it may hold the driver's locks meanwhile. */
static bool is_asynchronous(const struct work *work)
{
	if (work->kind != WORK_IS_COPY)
		return work->kind == WORK_IS_KERNEL || work->kind == WORK_IS_GRAPH;
	if (strncmp(work->subject, "cuMemset", strlen("cuMemset")) == 0)
		return true;
	return strstr(work->subject, "Async") &&
	       (work_is_small_copy(work) || strstr(work->subject, "DtoD"));
}

/*
 * From here on gates are closed. At the end of a lease not while a thread is between the gate and the driver: its work is not
 * marked yet. Who passes at that time looks at stream_gate_closed after raising `launching`. Holds `lock`.
 */
static bool begin_closing(int index)
{
	struct region_slot_device *slot = guest_slot_device(index);
	enum lease_state state = lease_state_of(atomic_load(&guest_control_device(index)->lease));

	atomic_store(&stream_gate_closed, (uint32_t)index + 1);
	if (state != LEASE_STOP && atomic_load(&slot->launching)) {
		atomic_store(&stream_gate_closed, 0);
		return false;
	}
	gate.of = atomic_load(&guest.slot);
	gate.slot = slot;
	if (atomic_fetch_add(&slot->waiting, 1) == 0 && state == LEASE_STOP)
		bell_ring(index);
	atomic_fetch_add(&closed_change, 1);
	sys_futex_wake(&closed_change, 1);
	return true;
}

/* Takes room behind the gates for a launch of pass->ns. */
static bool take_room(int index, uint64_t most_ns, struct stream_gate_pass *pass, bool *ret_is_first)
{
	WITH_LOCK(&gate.lock);
	uint32_t closed = atomic_load(&stream_gate_closed);

	if (gate.is_off || (closed && closed != (uint32_t)index + 1) || gate.held >= MOST ||
	    (gate.held && gate.held_ns >= most_ns) || is_out_of_place(index) ||
	    (closed ? atomic_load(&guest.slot) != gate.of : !begin_closing(index)))
		return false;
	gate.passing++;
	gate.held++;
	gate.held_ns += pass->ns;
	atomic_fetch_add(&flight_devices[index].held_ns, (int64_t)pass->ns);
	pass->number = atomic_load(&flight_devices[index].gates_opened) + 1;
	pass->slot = gate.slot;
	*ret_is_first = !closed;
	return true;
}

void stream_gate_passed(int index, const struct stream_gate_pass *pass, bool is_launched)
{
	WITH_LOCK(&gate.lock);
	if (pass->number != atomic_load(&flight_devices[index].gates_opened) + 1) {
		atomic_fetch_sub(&pass->slot->launching, 1);
		return;
	}
	gate.passing--;
	if (is_launched)
		return;
	gate.held--;
	gate.held_ns -= pass->ns;
	atomic_fetch_sub(&flight_devices[index].held_ns, (int64_t)pass->ns);
}

/* Closes a gate behind all that is in the stream. Holds `closing`. */
static bool close_gate(struct flight_stream *s, int index, uint32_t number)
{
	CUdeviceptr word = gate.address + (uint64_t)index * sizeof(*page);

	if (atomic_load(&s->gate) == number)
		return true;
	if (!flight_mark_rest(s))
		return false;
	CUresult result = real.cuStreamWaitValue32_v2(s->handle, word, number, WAIT_GEQ);
	if (result == CUDA_ERROR_NOT_SUPPORTED)
		turn_off();
	if (result != CUDA_SUCCESS)
		return false;
	flight_gate_closed(s, number);
	return true;
}

bool stream_gate_let_through(struct flight_stream *s, const struct work *work, int index,
			     struct stream_gate_pass *pass)
{
	uint64_t most_ns = atomic_load_explicit(&guest_control_device(index)->queue_ns,
						memory_order_relaxed);
	bool is_first;

	*pass = (struct stream_gate_pass){ 0 };
	if (!most_ns || !s || flight_is_overflow(s) || swap_is_on() ||
	    atomic_load(&guest.captures) || !is_asynchronous(work) || is_out_of_place(index))
		return false;
	pass->ns = atomic_load_explicit(&estimate_of(work)->ns, memory_order_relaxed);
	if (!pass->ns)
		return false;
	WITH_LOCK(&gate.closing);
	if (!prepare(s->context) || !take_room(index, most_ns, pass, &is_first))
		return false;
	/* A mark that comes later may be behind a wait for work that is behind a gate. */
	if (is_first)
		flight_mark_all(index);
	/* Where they were opened meanwhile, the launch is to be seen as any other. */
	if (close_gate(s, index, pass->number) && flight_is_gated(s))
		return true;
	stream_gate_passed(index, pass, false);
	pass->number = 0;
	return false;
}

void stream_gate_drop_contexts(void)
{
	/* First, as who holds `closing` may be in a call that waits for the gates. */
	stream_gate_open_all();
	WITH_LOCK(&gate.closing);
	stream_gate_open_all();
	gate.context = NULL;
}

void stream_gate_leave(void)
{
	WITH_LOCK(&gate.lock);
	gate.is_off = true;
	open_gates();
}

void stream_gate_reset(void)
{
	memset(&gate, 0, sizeof(gate));
	atomic_store(&page, NULL);
	atomic_store(&stream_gate_closed, 0);
}
