/*
 * The library's locks. At a fork, another thread may hold a lock, and that thread does not exist in the child. So the kernel
 * zeroes the pages of struct locks in a forked child (MADV_WIPEONFORK): every lock is free there, even before the child calls
 * the driver.
 *
 * forget_parent() in process.c drops the guarded data. Three kinds of locks are elsewhere, beside their data, and are cleared
 * with it: a shard's in ptrmap.c, a stream's in inflight_record.h, and struct biased_lock. test_locks.c fails if there is a
 * fourth kind.
 */
#pragma once

#include "abi/shm/region.h"
#include "library/sys/sys.h"

struct locks {
	/* One per device: held by the thread that asks the daemon for memory there (reserve_wait.h). */
	_Alignas(SYS_PAGE) struct sys_lock memory_request[REGION_MAX_DEVICES];
	struct sys_lock captures;
	struct sys_lock fast_path; /* take no other lock while holding this one */
	struct sys_lock graph;
	struct sys_lock helper_start;
	struct sys_lock inflight_capture;
	struct sys_lock inflight_table;
	struct sys_lock ipc; /* held during driver calls, so that no address is reused */
	struct sys_lock join;
	struct sys_lock ledger;
	struct sys_lock namespaces;
	struct sys_lock pool;
	struct sys_lock primary;
	struct sys_lock real_find;
	/* Held during driver calls that query or record events; taken before a stream's lock. */
	struct sys_lock report;
	struct sys_lock shared;
	struct sys_lock swap_arena;
	struct sys_lock swap_backing; /* never held during a driver call */
	struct sys_lock swap_contexts;
	struct sys_lock swap_peers;
	struct sys_lock swap_start;
	struct sys_lock trace_poll;
	struct sys_lock trace_seen;
	struct sys_lock visible;
	struct sys_lock vmm; /* held during driver calls that change references (hook_vmm.h) */
};

SYS_DATA struct locks locks;

/* Makes the kernel zero the locks in forked children; may be repeated. If false, a child may find a lock held. */
bool locks_prepare(void);
