#include "library/process.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>

#include "abi/shm/gvisor.h"
#include "library/entry/hook_graph.h"
#include "library/entry/hook_ipc.h"
#include "library/entry/hook_pool.h"
#include "library/entry/hooks.h"
#include "library/launch/captures.h"
#include "library/launch/inflight/inflight.h"
#include "library/launch/inflight/inflight_settle.h"
#include "library/launch/report.h"
#include "library/loader/fast_path.h"
#include "library/loader/elf_lookup.h"
#include "library/loader/real.h"
#include "library/memory/reserve_wait.h"
#include "library/memory/holding.h"
#include "library/memory/ledger.h"
#include "library/memory/suballoc.h"
#include "library/memory/ptrmap.h"
#include "library/registration_client.h"
#include "library/state/bell.h"
#include "library/state/helper.h"
#include "library/swap/ipc_broker.h"
#include "library/swap/fd_exchange_client.h"
#include "library/swap/swap.h"
#include "library/swap/swap_quiesce.h"
#include "library/sys/config.h"
#include "library/sys/locks.h"
#include "library/sys/log.h"
#include "library/trace/trace.h"

/* How long a process tries to join while no daemon answers. Tests define a shorter time. */
#ifndef JOIN_PATIENCE_NS
#define JOIN_PATIENCE_NS (30 * NS_PER_S)
#endif
#define JOIN_ANSWER_NS (5 * NS_PER_S) /* how long one try waits for the daemon's answer */
/* How long the helper thread waits for a new daemon's answer. Short, because it does not see work end meanwhile. */
#define REJOIN_ANSWER_NS (500 * NS_PER_MS)
#define JOIN_RETRY_NS (50 * NS_PER_MS) /* time between two tries */

/*
 * If the heartbeat does not change for this long, the daemon has ended or is stopped. HEARTBEAT_PATIENCE_NS applies while this
 * process has work, because the heartbeat then changes 20 times a second. Otherwise it may change only once a second, so
 * RESTING_PATIENCE_NS applies. With an older daemon, which does not show its end in region_control.owner, HEARTBEAT_PATIENCE_NS
 * always applies.
 */
#define HEARTBEAT_PATIENCE_NS (250 * NS_PER_MS)
#define RESTING_PATIENCE_NS (2500 * NS_PER_MS)
/* After this long without work, the heartbeat may have slowed down to once a second. */
#define RESTED_NS (500 * NS_PER_MS)
#define REJOIN_EVERY_NS (50 * NS_PER_MS) /* time between two tries to reach a new daemon */

static struct process_own *_Atomic own_page;

/* The previous daemon's mappings, which stay readable until the next daemon comes. */
static struct retired {
	const struct region_control *control;
	struct region_report *report;
} previous;
/*
 * The mappings of earlier daemons. A call that began under such a daemon may still access these addresses. So pages of zeros,
 * which take no memory, are mapped there instead of the files. Beyond RETIRED_MAX, the oldest is unmapped.
 */
#define RETIRED_MAX 64
static struct retired retired[RETIRED_MAX];
static uint32_t retired_count;

static uint64_t heartbeat_seen_ns;
static uint32_t heartbeat_seen;
/* When the process last had work, or a thread that waited to launch work. */
static uint64_t had_work_ns;
/* When the helper thread saw that the daemon had ended; 0 if it has not. */
static uint64_t ended_seen_ns;
static uint64_t rejoined_ns;
/* A new daemon still lacks descriptors of this process's memory (ipc_broker.h). */
static bool must_republish;
/* region_control.swap while its order is SWAP_ORDER_PARKED, else 0. */
static uint32_t parked_word;
static uint64_t parked_launches; /* launches when the helper thread first saw parked_word */

/* The parts of the library that keep state. Their functions are called in the order of this table. */
static const struct part {
	/* In a forked child: drops the parent's state. The locks are free already (locks.h). */
	void (*forget_parent)(void);
	void (*poll)(uint64_t now_ns); /* called by the helper thread */
} parts[] = {
	{ hook_context_reset },
	{ hook_pool_reset, hook_pool_refresh },
	{ hook_ipc_reset },
	{ shared_reset, shared_refresh },
	{ fd_exchange_reset, fd_exchange_retry },
	{ hook_graph_reset, hook_graph_refresh },
	{ process_reset },
	{ ptrmap_reset },
	{ swap_reset, swap_check_timeout },
	{ suballoc_reset, suballoc_trim },
	{ captures_reset },
	{ inflight_reset },
	{ helper_reset },
	{ report_reset },
	{ trace_reset },
};

/* Why a process could not join (`error` is -errno), and what to do. NULL if unknown. */
static const char *why_failed(int error)
{
	switch (-error) {
	case EMFILE:
		return "this process has no file descriptor left; raise its limit (ulimit -n), or "
		       "close some before it first uses the GPU";
	case ENFILE: return "the machine has no file descriptor left; raise fs.file-max";
	case ENOMEM:
		return "this process has no address space left for allot's shared memory; raise "
		       "its limit (ulimit -v)";
	case EINVAL:
		return "this process runs in a user namespace that does not map its user and "
		       "group; write uid_map and gid_map before it first uses the GPU";
	case EACCES:
	case EPERM:
		return "this process may not connect to the socket; run it as a user with "
		       "permission, and let its seccomp filter allow Unix sockets";
	case EPROTO:
		return "liballot.so does not understand the answer of allotd; use both of the "
		       "same version";
	case EAGAIN:
	case ECONNRESET:
	case EPIPE:
		return "allotd closed the connection or did not answer for 30 s; check that "
		       "allotd runs, then start the program again";
	default: return NULL;
	}
}

/* Makes this process's own page if needed. On failure returns NULL, with the reason in *ret_why. */
static struct process_own *get_own_page(const char **ret_why)
{
	struct process_own *page = atomic_load(&own_page), *none = NULL;

	if (page)
		return page;
	page = sys_map(NULL, 0, 4096);
	if (!page) {
		*ret_why = why_failed(-ENOMEM);
		return NULL;
	}
	if (!locks_prepare() || madvise(page, 4096, MADV_WIPEONFORK) != 0) {
		*ret_why = "madvise(MADV_WIPEONFORK) is refused, as by a seccomp filter; let the "
			   "filter allow it (it needs Linux 4.14)";
		munmap(page, 4096);
		return NULL;
	}
	if (!atomic_compare_exchange_strong(&own_page, &none, page)) {
		munmap(page, 4096);
		return none;
	}
	return page;
}

/* In a forked child. Mappings stay, because a thread may be reading them. The caller holds locks.join. */
static void forget_parent(void)
{
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (parts[i].forget_parent)
			parts[i].forget_parent();
	memset(&previous, 0, sizeof(previous));
	heartbeat_seen_ns = rejoined_ns = 0;
	atomic_store(&process_state.mode, PROCESS_UNKNOWN);
}

/* The library's NVML hooks list processes by own_pid, so set it before anything is counted in the slot. */
static struct region_slot *sign_slot(const struct registration *r)
{
	struct region_slot *slot = &r->report->slot[r->slot];

	atomic_store(&slot->own_pid, (int32_t)syscall(SYS_getpid));
	atomic_store(&slot->heeds_owner, 1);
	return slot;
}

static void publish(void *context)
{
	const struct registration *r = context;

	atomic_store(&process_state.control, r->control);
	atomic_store(&process_state.report, r->report);
	atomic_store(&process_state.slot, &r->report->slot[r->slot]);
	atomic_store(&process_state.turn, r->slot + 1);
	fast_path_close(FAST_PATH_ALL);
	for (uint32_t i = 0; i < r->control->device_count; i++)
		bell_ring((int)i);
}

static void map_zeros(const void *at, size_t bytes, int protection)
{
	if (at)
		mmap((void *)(uintptr_t)at, bytes, protection,
		     MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

static void retire_pages(struct retired l)
{
	struct retired *oldest = &retired[retired_count++ % RETIRED_MAX];

	registration_unmap(oldest->control, oldest->report);
	*oldest = l;
	map_zeros(l.control, sizeof(*l.control), PROT_READ);
	map_zeros(l.report, sizeof(*l.report), PROT_READ | PROT_WRITE);
}

static void adopt(const struct registration *r)
{
	struct region_slot *old = atomic_load(&process_state.slot);
	const struct region_control *old_control = atomic_load(&process_state.control);
	struct region_report *old_report = atomic_load(&process_state.report);

	shared_republish(r->report, &r->report->slot[r->slot]);
	swap_publish(&r->report->slot[r->slot]);
	ledger_move(old, sign_slot(r), publish, (void *)(uintptr_t)r);
	retire_pages(previous);
	previous.control = old_control;
	previous.report = old_report;
}

/* Only explains why joining failed. It is no reason to refuse, because joining may work in a later version of gVisor. */
static bool is_in_gvisor(void)
{
	struct utsname name;

	return uname(&name) == 0 &&
	       (gvisor_is_kernel(name.release) || gvisor_is_kernel(name.version));
}

static void explain_refusal(const char *path, int error, const char *message)
{
	const char *why = why_failed(error);

	if (is_in_gvisor()) {
		log_debug("registration at %s: errno %d: %s", path, -error, message);
		log_refusal(
			"no GPU for this process: it runs in gVisor (runsc), where allot cannot "
			"share a GPU; use runc (in Kubernetes, remove runtimeClassName, or name a "
			"RuntimeClass of runc)");
	} else if (*message)
		log_refusal("no GPU for this process: %s", message);
	else if (error == -ENOENT || error == -ECONNREFUSED)
		log_refusal("no GPU for this process: no daemon answers at %s (waited 30 s); start "
			    "allotd, or outside of containers unset ALLOT_SOCKET to use the GPU "
			    "without a quota",
			    path);
	else if (why)
		log_refusal("no GPU for this process: registration at %s: %s", path, why);
	else
		log_refusal("no GPU for this process: registration at %s failed with errno %d; run "
			    "allot doctor",
			    path, -error);
}

static enum process_mode ask_until_answered(const char *path)
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
		return PROCESS_REFUSED;
	}
	atomic_store(&process_state.slot, NULL);
	ledger_move(NULL, sign_slot(&r), publish, &r);
	swap_begin(r.arena, r.control->arena_bytes);
	log_debug("joined tenant '%s', slot %u", r.control->tenant_name, r.slot);
	return PROCESS_ACTIVE;
}

/* True if the reply has the files and the slot that this process already has: the daemon was only stopped, not restarted. */
static bool is_same_daemon(const struct registration *r)
{
	return r->control->epoch == atomic_load(&process_state.control)->epoch &&
	       r->slot + 1 == atomic_load(&process_state.turn);
}

bool process_rejoin(void)
{
	const struct region_control *control = atomic_load(&process_state.control);
	struct registration r;

	WITH_LOCK(&locks.join);
	int error = registration_ask(config_socket(), control->epoch, REJOIN_ANSWER_NS, &r);
	if (error)
		return false;
	if (is_same_daemon(&r)) {
		registration_unmap(r.control, r.report);
		log_debug("the daemon answers again; it was stopped, not restarted");
	} else {
		adopt(&r);
		log_debug("registered with the restarted daemon, slot %u", r.slot);
	}
	atomic_store(&process_state.daemon_lost, false);
	return true;
}

static uint64_t heartbeat_patience_ns(const struct region_control *control, bool has_work)
{
	return has_work || !atomic_load(&control->owner) ? HEARTBEAT_PATIENCE_NS
							 : RESTING_PATIENCE_NS;
}

/* For the helper thread: notices a lost daemon, and joins again. has_work: work runs, or a thread waits to launch. */
static void watch_heartbeat(bool has_work, uint64_t now_ns)
{
	const struct region_control *control = atomic_load(&process_state.control);
	uint32_t beat = atomic_load_explicit(&control->heartbeat, memory_order_relaxed);
	bool has_ended = region_has_lost_owner(control);

	/* The next daemon may be about to start, so wait for a heartbeat from now on. */
	if (has_ended && !ended_seen_ns)
		ended_seen_ns = heartbeat_seen_ns = now_ns;
	if (!has_ended)
		ended_seen_ns = 0;

	/* Without work the heartbeat came only once a second; from now on it comes often. So count from now. */
	if (has_work && heartbeat_seen_ns && now_ns - had_work_ns > RESTED_NS)
		heartbeat_seen_ns = now_ns;
	if (has_work)
		had_work_ns = now_ns;
	if (!has_ended && (beat != heartbeat_seen || !heartbeat_seen_ns)) {
		heartbeat_seen = beat;
		heartbeat_seen_ns = now_ns;
		if (atomic_load(&process_state.daemon_lost)) {
			atomic_store(&process_state.daemon_lost, false);
			log_debug("the daemon's heartbeat is back");
		}
		return;
	}
	if (now_ns - heartbeat_seen_ns < heartbeat_patience_ns(control, has_work || has_ended))
		return;
	if (!atomic_exchange(&process_state.daemon_lost, true))
		log_debug("%s: continuing under the last quotas, without turns",
			  has_ended ? "the daemon has ended" : "no heartbeat from the daemon");
	if (now_ns - rejoined_ns < REJOIN_EVERY_NS)
		return;
	rejoined_ns = now_ns;
	if (!process_rejoin())
		return;
	heartbeat_seen_ns = 0;
	must_republish = true;
}

/*
 * True if the daemon has locked the driver for this process, or is about to (SWAP_ORDER_PARKED). A call of the driver by the
 * helper thread would then not return. Copies the swap word into the slot, to confirm the order. If the daemon is lost, a
 * launch since the order shows that the driver is unlocked again.
 */
static bool is_parked(uint32_t count)
{
	struct region_slot *slot = atomic_load(&process_state.slot);
	uint32_t word = atomic_load(&atomic_load(&process_state.control)->swap);
	uint64_t launches = 0;

	if (swap_order_of(word) != SWAP_ORDER_PARKED) {
		parked_word = 0;
		return false;
	}
	for (uint32_t i = 0; i < count; i++)
		launches += inflight_launches((int)i);
	if (parked_word != word) {
		parked_word = word;
		parked_launches = launches;
	}
	atomic_store(&slot->swap_word, word);
	return !atomic_load(&process_state.daemon_lost) || launches == parked_launches;
}

static uint64_t poll_once(bool was_woken)
{
	uint64_t now_ns = sys_now_ns();

	if (is_parked(atomic_load(&process_state.control)->device_count)) {
		watch_heartbeat(false, now_ns);
		return REPORT_IDLE_NS;
	}
	struct report report = report_devices(now_ns);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (parts[i].poll)
			parts[i].poll(now_ns);
	watch_heartbeat(report.any_busy || report.any_waits, now_ns);
	trace_poll();
	if (unlikely(must_republish))
		must_republish = !ipc_broker_republish(now_ns);
	return report_next_poll_ns(&report, was_woken);
}

static void at_start(void)
{
	if (process_is_active())
		trace_poll();
}

/* The helper thread must not be in the driver while the driver is torn down. */
static void at_exit(void)
{
	if (!process_is_active())
		return; /* a forked child inherits the exit handler, but not the helper thread */
	helper_stop();
	atomic_store(&process_state.mode, PROCESS_LEAVING);
	fast_path_close(FAST_PATH_ALL);
	swap_wait_for_driver();
	helper_wait_for_poll();
}

static const struct helper_duties duties = { poll_once, at_start, at_exit };

static bool is_settled(enum process_mode mode)
{
	return mode != PROCESS_UNKNOWN &&
	       (mode != PROCESS_ACTIVE || atomic_load(&process_own()->is_joined));
}

enum process_mode process_join(void)
{
	enum process_mode mode = (enum process_mode)atomic_load(&process_state.mode);

	if (likely(is_settled(mode)))
		return mode;
	const char *path = config_socket();
	if (!*path) {
		mode = config_is_unusable() ? PROCESS_REFUSED : PROCESS_PLAIN;
		atomic_store(&process_state.mode, mode);
		return mode;
	}
	/* A process has one slot. A second copy of the library, in a dlmopen namespace, would take it from the first. */
	if (!elf_is_in_first_namespace()) {
		explain_refusal(
			path, -ENOTSUP,
			"the program loaded libcuda with dlmopen into a separate linker namespace, "
			"where allot cannot enforce its quota; load libcuda with dlopen");
		atomic_store(&process_state.mode, PROCESS_REFUSED);
		return PROCESS_REFUSED;
	}
	const char *why = NULL;
	struct process_own *page = get_own_page(&why);
	if (!page) {
		explain_refusal(path, -ENOMEM, why);
		return PROCESS_REFUSED;
	}
	WITH_LOCK(&locks.join);
	mode = (enum process_mode)atomic_load(&process_state.mode);
	if (is_settled(mode))
		return mode;
	if (mode == PROCESS_ACTIVE)
		forget_parent();
	fast_path_prepare();
	helper_assign(&duties);
	charge_set_trim(hook_pool_trim);
	mode = ask_until_answered(path);
	atomic_store(&page->is_joined, mode == PROCESS_ACTIVE);
	atomic_store(&process_state.own, page);
	if (mode == PROCESS_ACTIVE) {
		process_update_has_one_device();
		trace_poll();
	}
	atomic_store(&process_state.mode, mode);
	return mode;
}
