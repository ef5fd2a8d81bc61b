#include "library/memory/swap_room.h"

#include "library/loader/real.h"
#include "library/memory/ledger.h"
#include "library/memory/swap_hold.h"
#include "library/state/process_state.h"
#include "library/trace/trace_record.h"

/* How long a call waits while the daemon expects no room, or there is no daemon. After that the call fails. */
#define PATIENCE_NS (60 * NS_PER_S)
#define NAP_NS (10 * NS_PER_MS)
#define ROUNDING_BYTES (128ULL << 20)

static _Atomic uint64_t wanted_bytes[REGION_MAX_DEVICES];
static __thread struct {
	int device;
	uint64_t bytes;
	bool is_drivers;
} shortage; /* the thread's last try found no room for `bytes`; 0 if there was room */

static bool is_beyond_bound(int device)
{
	uint64_t bound = atomic_load(&process_control_device(device)->swap_bound_bytes);

	return bound != UINT64_MAX && !atomic_load(&process_state.daemon_lost) &&
	       ledger_used(device) > bound;
}

/* Adds to the bytes for which this process waits on `device`; negative bytes end a wait. */
static void add_wanted(int device, int64_t bytes)
{
	_Atomic uint64_t *told = &atomic_load(&process_state.slot)->swap[device].wanted_bytes;

	atomic_fetch_add(&wanted_bytes[device], (uint64_t)bytes);
	atomic_store(told, atomic_load(&wanted_bytes[device]));
}

uint64_t swap_wanted_bytes(int device)
{
	return atomic_load(&wanted_bytes[device]);
}

bool swap_wait_for_room(uint64_t *since_ns)
{
	/* Other tenants' turns take any time, so restart the wait while the daemon expects room, unless the daemon is lost. */
	if (!atomic_load(&process_state.daemon_lost) &&
	    atomic_load(&atomic_load(&process_state.control)->swap_hope))
		*since_ns = sys_now_ns();
	if (!process_is_active() || sys_now_ns() - *since_ns > PATIENCE_NS)
		return false;
	/* This is no wait for GPU time: if it were reported as one, the process would get time that it cannot use. */
	sys_sleep_ns(NAP_NS);
	return true;
}

void swap_room_record_shortage(int device, uint64_t bytes, bool is_drivers)
{
	shortage.device = device;
	shortage.bytes = bytes;
	shortage.is_drivers = is_drivers;
}

bool swap_room_is_reserved(int device, uint64_t bytes)
{
	if (likely(!swap_is_on()) || device < 0 || device == REGION_HOST || !is_beyond_bound(device))
		return false;
	swap_room_record_shortage(device, bytes, false);
	return true;
}

/* True if the GPU has room for shortage.bytes, however the driver rounds. False if the driver cannot be asked now. */
static bool gpu_has_room(void)
{
	size_t free_bytes, total_bytes;

	return real.cuMemGetInfo_v2 && !atomic_load(&process_state.captures) &&
	       process_current_index() == shortage.device &&
	       real.cuMemGetInfo_v2(&free_bytes, &total_bytes) == CUDA_SUCCESS &&
	       free_bytes / 2 > shortage.bytes + ROUNDING_BYTES;
}

void swap_room_begin(struct swap_room *room)
{
	room->bytes = 0;
	room->had_room = false;
	/* Inside the hold of an outer call (swap_hold.h), `shortage` belongs to that call. */
	if (swap_is_on() && !swap_is_inside())
		shortage.bytes = 0;
}

static bool end(struct swap_room *room, CUresult result)
{
	if (room->bytes) {
		add_wanted(room->device, -(int64_t)room->bytes);
		trace_wait(TRACE_MEMORY_WAIT, room->device, room->trace_begin, room->bytes,
			   (uint16_t)result);
	}
	room->bytes = 0;
	return false;
}

bool swap_room_should_retry(struct swap_room *room, CUresult result)
{
	if (likely(result != CUDA_ERROR_OUT_OF_MEMORY || !swap_is_on()))
		return end(room, result);
	if (swap_is_inside() || !shortage.bytes)
		return end(room, result);
	/* Fail after two failures with room. At one failure, another tenant may have left the GPU just before this query. */
	bool has_room = shortage.is_drivers && gpu_has_room();
	if (has_room && room->had_room)
		return end(room, result);
	room->had_room = has_room;
	if (!room->bytes) {
		room->device = shortage.device;
		room->bytes = shortage.bytes;
		room->since_ns = sys_now_ns();
		room->trace_begin = trace_begin();
		add_wanted(room->device, (int64_t)room->bytes);
	}
	shortage.bytes = 0;
	return swap_wait_for_room(&room->since_ns) || end(room, result);
}

void swap_room_reset(void)
{
	for (int i = 0; i < REGION_MAX_DEVICES; i++)
		atomic_store(&wanted_bytes[i], 0);
}
