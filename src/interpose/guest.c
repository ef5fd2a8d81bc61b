#include "interpose/guest.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "interpose/admission.h"
#include "interpose/bell.h"
#include "interpose/captures.h"
#include "interpose/config.h"
#include "interpose/door.h"
#include "interpose/elf_lookup.h"
#include "interpose/flight.h"
#include "interpose/helper.h"
#include "interpose/hook_graph.h"
#include "interpose/hook_ipc.h"
#include "interpose/hook_pool.h"
#include "interpose/hooks.h"
#include "interpose/ledger.h"
#include "interpose/log.h"
#include "interpose/piece.h"
#include "interpose/ptrmap.h"
#include "interpose/real.h"
#include "interpose/registration.h"
#include "interpose/swap.h"
#include "interpose/trace.h"

#ifndef JOIN_PATIENCE_NS /* tests have less */
#define JOIN_PATIENCE_NS (30 * NS_PER_S)
#endif
#define JOIN_ANSWER_NS (5 * NS_PER_S)
/* The helper sees no work end while it waits for a daemon that was stopped. */
#define REJOIN_ANSWER_NS (500 * NS_PER_MS)
#define JOIN_RETRY_NS (50 * NS_PER_MS)
#define MAX_CUDA_DEVICES 64

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

/* Of a process that has not joined. */
static struct guest_own nobody;
struct guest guest = { .own = &nobody };

static struct guest_own *_Atomic own_page;

/* Mappings of the daemon before this one: readable until the next change, see guest.h. */
static struct left {
	const struct region_control *control;
	struct region_report *report;
} previous;
/*
 * Those before: a thread may be in a call that has lasted for all the time since. What it reads or writes there is
 * of no use, but it must not fault; so pages of zeros take their place, which nobody's memory is spent on.
 */
#define LEFT_MOST 64
static struct left left[LEFT_MOST];
static uint32_t left_count;

/* CUDA ordinal -> index + 1; 0: not looked up yet, -1: not the tenant's. */
static _Atomic int8_t device_index[MAX_CUDA_DEVICES];

/* Names the missing resource and its remedy when this process can't join; NULL: the cause is not known. */
static const char *why_failed(int error)
{
	switch (-error) {
	case EMFILE:
		return "it has no file descriptor left; raise its limit (ulimit -n), or close "
		       "some before the GPU is first used";
	case ENFILE: return "the machine has no file descriptor left; raise fs.file-max";
	case ENOMEM:
		return "it can't map the tenant's pages; raise its limit of address space "
		       "(ulimit -v)";
	case EINVAL:
		return "its user namespace does not map its own user and group; write uid_map and "
		       "gid_map before the GPU is first used";
	case EACCES:
	case EPERM:
		return "it may not connect to the daemon's socket; run it as a user who may, and "
		       "let its "
		       "seccomp filter allow Unix sockets";
	case EPROTO:
		return "the daemon's answer can't be read; use liballot.so and allotd of one "
		       "version";
	case EAGAIN:
	case ECONNRESET:
	case EPIPE:
		return "the daemon ends or stands still (waited 30 s); look whether allotd runs";
	default: return NULL;
	}
}

/* NULL: it can't be had, and *ret_why says why. */
static struct guest_own *get_own_page(const char **ret_why)
{
	struct guest_own *page = atomic_load(&own_page), *none = NULL;

	if (page)
		return page;
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED) {
		*ret_why = why_failed(-ENOMEM);
		return NULL;
	}
	if (madvise(page, 4096, MADV_WIPEONFORK) != 0) {
		*ret_why = "madvise(MADV_WIPEONFORK) is refused, as by a seccomp filter; let the "
			   "filter allow it (it needs Linux 4.14)";
		munmap(page, 4096);
		return NULL;
	}
	if (!atomic_compare_exchange_strong(&own_page, &none, page)) {
		munmap(page, 4096);
		return none; /* another thread was faster */
	}
	return page;
}

/*
 * In the child of a fork: the parent's slot, threads and driver state are not ours, and locks may be
 * held by nobody who lives. Mappings stay (a thread may look at them); nothing is written to them any
 * more. Holds join_lock.
 */
static void forget_parent(void)
{
	real_reset();
	ledger_reset();
	admission_reset();
	hook_context_reset();
	hook_pool_reset();
	hook_vmm_reset();
	hook_ipc_reset();
	shared_reset();
	hook_graph_reset();
	for (int i = 0; i < MAX_CUDA_DEVICES; i++)
		atomic_store(&device_index[i], 0);
	atomic_store(&guest.captures, 0);
	memset(&previous, 0, sizeof(previous));
	ptrmap_reset();
	piece_reset();
	captures_reset();
	flight_reset();
	helper_reset();
	swap_reset();
	trace_reset();
	atomic_store(&guest.mode, GUEST_UNKNOWN);
}

/* Before anything is counted in the slot: NVML in the tenant lists processes by it. */
static struct region_slot *signed_slot(const struct registration *r)
{
	struct region_slot *slot = &r->report->slot[r->slot];

	atomic_store(&slot->own_pid, (int32_t)syscall(SYS_getpid));
	atomic_store(&slot->heeds_owner, 1);
	return slot;
}

static void publish(void *context)
{
	const struct registration *r = context;

	atomic_store(&guest.control, r->control);
	atomic_store(&guest.report, r->report);
	atomic_store(&guest.slot, &r->report->slot[r->slot]);
	atomic_store(&guest.turn, r->slot + 1);
	door_shut(DOOR_ALL);
	for (uint32_t i = 0; i < r->control->device_count; i++)
		bell_ring((int)i);
}

static void put_zeros(const void *at, size_t bytes, int protection)
{
	if (at)
		mmap((void *)(uintptr_t)at, bytes, protection,
		     MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

static void leave_pages(struct left l)
{
	struct left *oldest = &left[left_count++ % LEFT_MOST];

	registration_unmap(oldest->control, oldest->report);
	*oldest = l;
	put_zeros(l.control, sizeof(*l.control), PROT_READ);
	put_zeros(l.report, sizeof(*l.report), PROT_READ | PROT_WRITE);
}

static void adopt(const struct registration *r)
{
	struct region_slot *old = atomic_load(&guest.slot);
	const struct region_control *old_control = atomic_load(&guest.control);
	struct region_report *old_report = atomic_load(&guest.report);

	shared_move(r->report, &r->report->slot[r->slot]);
	swap_move(&r->report->slot[r->slot]);
	ledger_move(old, signed_slot(r), publish, (void *)(uintptr_t)r);
	leave_pages(previous);
	previous.control = old_control;
	previous.report = old_report;
}

static void explain_refusal(const char *path, int error, const char *message)
{
	const char *why = why_failed(error);

	if (*message)
		log_refusal("no GPU for this process: %s", message);
	else if (error == -ENOENT || error == -ECONNREFUSED)
		log_refusal("no GPU for this process: no daemon answers at %s (waited 30 s); "
			    "start allotd, or run without ALLOT_SOCKET",
			    path);
	else if (why)
		log_refusal("no GPU for this process: registration at %s: %s", path, why);
	else
		log_refusal("no GPU for this process: registration at %s: failed with errno %d",
			    path, -error);
}

static enum guest_mode ask_until_answered(const char *path)
{
	struct registration r;
	uint64_t start = sys_now_ns();
	int error;

	for (;;) {
		error = registration_ask(path, 0, JOIN_ANSWER_NS, &r);
		bool daemon_is_away = !*r.message &&
				      (error == -ENOENT || error == -ECONNREFUSED ||
				       error == -ECONNRESET || error == -EPIPE || error == -EAGAIN);
		if (!error || !daemon_is_away || sys_now_ns() - start > JOIN_PATIENCE_NS)
			break;
		sys_sleep_ns(JOIN_RETRY_NS);
	}
	if (error) {
		explain_refusal(path, error, r.message);
		return GUEST_REFUSED;
	}
	atomic_store(&guest.slot, NULL);
	ledger_move(NULL, signed_slot(&r), publish, &r);
	swap_begin(r.arena, r.control->arena_bytes);
	log_debug("joined tenant '%s', slot %u", r.control->tenant_name, r.slot);
	return GUEST_ACTIVE;
}

static bool is_settled(enum guest_mode mode)
{
	return mode != GUEST_UNKNOWN &&
	       (mode != GUEST_ACTIVE || atomic_load(&guest_own()->is_joined));
}

enum guest_mode guest_join(void)
{
	enum guest_mode mode = (enum guest_mode)atomic_load(&guest.mode);
	const char *path;

	if (likely(is_settled(mode)))
		return mode;
	path = config_socket();
	if (!*path) {
		mode = config_is_unusable() ? GUEST_REFUSED : GUEST_PLAIN;
		atomic_store(&guest.mode, mode);
		return mode;
	}
	/* A process has one slot; a second copy of the library would take it from the first. */
	if (!elf_is_in_first_namespace()) {
		explain_refusal(path, -ENOTSUP,
				"the driver was loaded by dlmopen into a namespace of its own, "
				"where no quota can be kept; load it with dlopen");
		atomic_store(&guest.mode, GUEST_REFUSED);
		return GUEST_REFUSED;
	}
	const char *why = NULL;
	struct guest_own *page = get_own_page(&why);
	if (!page) {
		explain_refusal(path, -ENOMEM, why);
		return GUEST_REFUSED;
	}
	WITH_LOCK(&page->join_lock);
	mode = (enum guest_mode)atomic_load(&guest.mode);
	if (is_settled(mode))
		return mode;
	if (mode == GUEST_ACTIVE)
		forget_parent();
	door_prepare();
	mode = ask_until_answered(path);
	atomic_store(&page->is_joined, mode == GUEST_ACTIVE);
	atomic_store(&guest.own, page);
	if (mode == GUEST_ACTIVE) {
		guest_settle_quick_way();
		trace_look();
	}
	atomic_store(&guest.mode, mode);
	return mode;
}

void guest_settle_quick_way(void)
{
	atomic_store(&guest_own()->has_one_device, atomic_load(&guest.control)->device_count == 1 &&
							   !atomic_load(&guest.detours));
}

/* Its pages are those that we have. */
static bool is_same_daemon(const struct registration *r)
{
	return r->control->epoch == atomic_load(&guest.control)->epoch &&
	       r->slot + 1 == atomic_load(&guest.turn);
}

bool guest_rejoin(void)
{
	const struct region_control *control = atomic_load(&guest.control);
	struct registration r;

	WITH_LOCK(&atomic_load(&own_page)->join_lock);
	int error = registration_ask(config_socket(), control->epoch, REJOIN_ANSWER_NS, &r);
	if (error)
		return false;
	if (is_same_daemon(&r)) {
		registration_unmap(r.control, r.report);
		log_debug("the daemon stood still");
	} else {
		adopt(&r);
		log_debug("adopted by a new daemon, slot %u", r.slot);
	}
	atomic_store(&guest.daemon_lost, false);
	return true;
}

int guest_uuid_index(const void *uuid)
{
	const struct region_control *control = atomic_load(&guest.control);

	for (uint32_t i = 0; control && i < control->device_count; i++)
		if (memcmp(control->device[i].uuid, uuid, 16) == 0)
			return (int)i;
	return -1;
}

CUresult guest_find_device(CUdevice device, int *ret_index)
{
	bool is_kept = device >= 0 && device < MAX_CUDA_DEVICES;
	int known = is_kept ? atomic_load_explicit(&device_index[device], memory_order_relaxed) : 0;
	CUuuid uuid;

	if (!known) {
		/* _v2 names the MIG instance where there is one, as the tenant's list does. */
		CUresult result = real.cuDeviceGetUuid_v2 ? real.cuDeviceGetUuid_v2(&uuid, device)
							  : real.cuDeviceGetUuid(&uuid, device);
		if (result != CUDA_SUCCESS)
			return result;
		int index = guest_uuid_index(&uuid);
		known = index >= 0 ? index + 1 : -1;
		if (is_kept)
			atomic_store_explicit(&device_index[device], (int8_t)known,
					      memory_order_relaxed);
	}
	*ret_index = known < 0 ? -1 : known - 1;
	return CUDA_SUCCESS;
}

bool guest_device_is_there(CUdevice device)
{
	int index;
	CUresult result = guest_find_device(device, &index);

	return result != CUDA_ERROR_INVALID_DEVICE && result != CUDA_ERROR_NOT_INITIALIZED;
}

int guest_device_index(CUdevice device)
{
	int index;

	return guest_find_device(device, &index) == CUDA_SUCCESS ? index : -1;
}

int guest_current_index(void)
{
	CUdevice device;

	if (!real.cuCtxGetDevice || real.cuCtxGetDevice(&device) != CUDA_SUCCESS)
		return -1;
	return guest_device_index(device);
}
