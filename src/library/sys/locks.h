/*
 * The library's locks. At a fork another thread may hold any of them, and that thread does not exist in the child. So
 * they share pages that the kernel zeroes in a forked child (MADV_WIPEONFORK): there every lock is free. This holds
 * before the child calls the driver, too.
 *
 * The data behind a lock is not zeroed; forget_parent() in process.c drops it. Only three kinds of lock lie elsewhere,
 * each beside the data that it guards, and are cleared there together with it: a shard's in ptrmap.c, a stream's in
 * inflight_record.h, and struct biased_lock. test_locks.c fails if there is another.
 */
#pragma once

#include "abi/shm/region.h"
#include "library/sys/sys.h"

struct locks {
	/* one request for memory per device: reserve_wait.h */
	_Alignas(SYS_PAGE) struct sys_lock ask[REGION_MAX_DEVICES];
	struct sys_lock captures;
	struct sys_lock fast_path; /* guards all changes; take no other lock while holding it */
	struct sys_lock furnished;
	struct sys_lock graph;
	struct sys_lock helper_start;
	struct sys_lock inflight_capture;
	struct sys_lock inflight_table;
	struct sys_lock ipc; /* held during driver calls, so that no address is reused meanwhile */
	struct sys_lock join;
	struct sys_lock ledger;
	struct sys_lock pool;
	struct sys_lock primary;
	struct sys_lock real_find;
	struct sys_lock shared;
	struct sys_lock swap_arena;
	struct sys_lock swap_backing; /* never held during a driver call */
	struct sys_lock swap_contexts;
	struct sys_lock swap_peers;
	struct sys_lock swap_start;
	struct sys_lock trace_look;
	struct sys_lock trace_seen;
	struct sys_lock visible;
	struct sys_lock vmm; /* held during the driver calls that change counts: hook_vmm.h */
};

SYS_DATA struct locks locks;

/*
 * Makes the kernel zero the locks in each forked child. Idempotent; called at load. Returns false if the kernel refuses: then a
 * forked child may find a lock held.
 */
bool locks_prepare(void);
