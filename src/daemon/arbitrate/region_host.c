#include "daemon/arbitrate/region_host.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "daemon/arbitrate/owner.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

struct mapping {
	void *address;
	size_t size;
};

static void cleanup_mapping(struct mapping *m)
{
	if (m->address)
		munmap(m->address, m->size);
}

/* If is_control, owner_map() maps the file, with more memory behind it. */
static int make_file(const char *name, size_t size, bool is_control, int seals,
		     struct mapping *ret_map, int *ret_fd, struct error *err)
{
	cleanup_fd int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return error_set_errno(err, errno, "%s: memfd", name);
	if (ftruncate(fd, (off_t)size) < 0)
		return error_set_errno(err, errno, "%s: %zu bytes", name, size);
	cleanup(cleanup_mapping) struct mapping map = { 0 };
	void *address = is_control ? owner_map(fd)
				   : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (!address || address == MAP_FAILED)
		return error_set_errno(err, errno, "%s: map %zu bytes", name, size);
	map = (struct mapping){ address, is_control ? OWNER_MAP_BYTES : size };
	if (fcntl(fd, F_ADD_SEALS, seals) < 0)
		return error_set_errno(err, errno, "%s: seal", name);
	*ret_map = map;
	map.address = NULL;
	*ret_fd = steal_fd(&fd);
	return 0;
}

static int reopen_read_only(int fd, struct error *err)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	int ro = open(path, O_RDONLY | O_CLOEXEC);
	return ro < 0 ? error_set_errno(err, errno, "open %s read-only", path) : ro;
}

static void fill_control(struct region_control *control, const char *name, uint64_t epoch,
			 unsigned device_count)
{
	control->magic = REGION_MAGIC;
	control->version = REGION_VERSION;
	control->size_bytes = sizeof(*control);
	control->device_count = device_count;
	control->epoch = epoch;
	snprintf(control->tenant_name, sizeof(control->tenant_name), "%s", name);
}

int region_host_create(struct region_host *host, const char *tenant_name, uint64_t epoch,
		       unsigned device_count, struct error *err)
{
	cleanup(cleanup_mapping) struct mapping control_map = { 0 };
	cleanup(cleanup_mapping) struct mapping report_map = { 0 };
	cleanup_fd int control_rw = -1;
	cleanup_fd int control_fd = -1;
	cleanup_fd int report_fd = -1;

	/* F_SEAL_FUTURE_WRITE forbids later writable maps, so map first. */
	int r = make_file("allot-control", sizeof(struct region_control), true,
			  F_SEAL_FUTURE_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL,
			  &control_map, &control_rw, err);
	if (r < 0)
		return r;
	r = make_file("allot-report", sizeof(struct region_report), false,
		      F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, &report_map, &report_fd, err);
	if (r < 0)
		return r;
	control_fd = reopen_read_only(control_rw, err);
	if (control_fd < 0)
		return control_fd;

	*host = (struct region_host){ .control = control_map.address,
				      .report = report_map.address,
				      .control_fd = steal_fd(&control_fd),
				      .report_fd = steal_fd(&report_fd) };
	control_map.address = NULL;
	report_map.address = NULL;
	fill_control(host->control, tenant_name, epoch, device_count);
	owner_hold(host->control);
	host->report->magic = REGION_MAGIC;
	host->report->version = REGION_VERSION;
	host->report->size_bytes = REGION_REPORT_BYTES;
	host->report->has_steps = 1;
	return 0;
}

void region_host_free(struct region_host *host)
{
	if (!host->control)
		return;
	owner_release(host->control);
	munmap(host->control, OWNER_MAP_BYTES);
	munmap(host->report, sizeof(*host->report));
	close(host->control_fd);
	close(host->report_fd);
	*host = (struct region_host){ .control_fd = -1, .report_fd = -1 };
}

_Static_assert(offsetof(struct region_slot, pid) == 8 && offsetof(struct region_slot, swap) % 8 == 0,
	       "region_host_clear_slot() zeroes whole words");

static void wake_paced(struct region_control_device *d)
{
	atomic_fetch_add(&d->grant_change, 1);
	syscall(SYS_futex, &d->grant_change, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void region_set_grant(struct region_control *control, unsigned device, uint64_t granted,
		      bool is_waited_for)
{
	struct region_control_device *d = &control->device[device];
	if (atomic_load_explicit(&d->granted, memory_order_relaxed) == granted)
		return;
	atomic_store(&d->granted, granted);
	if (is_waited_for)
		wake_paced(d);
	else
		atomic_fetch_add(&d->grant_change, 1);
}

void region_set_space(struct region_control *control, unsigned device, double part_pct)
{
	atomic_store(&control->space_pct_x100[device], (uint16_t)(part_pct * 100 + 0.5));
}

static void change_word(_Atomic uint32_t *word, uint32_t old, enum lease_state state)
{
	uint32_t next = ((old & ~LEASE_STATE_MASK) + LEASE_SEQUENCE_STEP) | (uint32_t)state;
	atomic_store_explicit(word, next, memory_order_seq_cst);
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void region_set_turn(struct region_control *control, unsigned device, uint32_t turn, bool is_going)
{
	struct region_control_device *c = &control->device[device];
	atomic_store_explicit(&c->turn, turn, memory_order_seq_cst);
	if (is_going)
		change_word(&c->lease, atomic_load_explicit(&c->lease, memory_order_relaxed),
			    LEASE_GO);
}

void region_set_memory_grant(struct region_control *control, unsigned device, uint64_t bytes)
{
	atomic_store(&control->device[device].memory_granted_bytes, bytes);
}

void region_wake_memory_grant(struct region_control *control, unsigned device)
{
	_Atomic uint32_t *word = &control->device[device].memory_grant_change;
	atomic_fetch_add(word, 1);
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void region_set_lease(struct region_control *control, unsigned device, enum lease_state state)
{
	_Atomic uint32_t *word = &control->device[device].lease;
	uint32_t old = atomic_load_explicit(word, memory_order_relaxed);
	if (lease_state_of(old) == state)
		return;
	change_word(word, old, state);
	/* Threads that wait for a grant of tokens no longer need one. */
	if (lease_state_of(old) == LEASE_PACED)
		wake_paced(&control->device[device]);
}

/* Zeroes whole words of 8 bytes. No field crosses a word, so no reader sees half a value. */
static void zero(void *from, size_t size)
{
	_Atomic uint64_t *word = from;
	for (size_t i = 0; i < size / sizeof(*word); i++)
		atomic_store(&word[i], 0);
}

void region_host_clear_slot(struct region_host *host, unsigned slot)
{
	struct region_slot *s = &host->report->slot[slot];
	zero(s->device, sizeof(s->device));
	zero(s->swap, sizeof(s->swap));
	zero(host->report->want[slot], sizeof(host->report->want[slot]));
	/* all other fields but `state` and `generation` */
	zero((char *)s + offsetof(struct region_slot, pid),
	     offsetof(struct region_slot, swap) - offsetof(struct region_slot, pid));
	atomic_store_explicit(&s->state, SLOT_EMPTY, memory_order_release);
}

void region_host_assign_slot(struct region_host *host, unsigned slot, int pid)
{
	struct region_slot *s = &host->report->slot[slot];
	_Atomic uint32_t *limit = &host->control->slot_limit;
	/* Processes sum only the slots below the limit. Raise it before filling the slot, so that they do not miss it. */
	if (atomic_load_explicit(limit, memory_order_relaxed) <= slot)
		atomic_store_explicit(limit, slot + 1, memory_order_seq_cst);
	/* The tenant can write to empty slots too. */
	region_host_clear_slot(host, slot);
	atomic_fetch_add_explicit(&s->generation, 1, memory_order_relaxed);
	atomic_store_explicit(&s->pid, pid, memory_order_relaxed);
	atomic_store_explicit(&s->state, SLOT_LIVE, memory_order_release);
}
