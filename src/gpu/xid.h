/*
 * Xid errors: what the NVIDIA driver says is wrong with a card, or with a program on it (docs.nvidia.com, "XID Errors"),
 * as NVML's events tell of them. Any one thread.
 */
#ifndef ALLOT_GPU_XID_H
#define ALLOT_GPU_XID_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "gpu/gpu.h"

struct xid_watch;

struct xid_event {
	char uuid_text[GPU_UUID_TEXT_MAX];
	uint64_t xid;
};

/*
 * All cards of that library (as gpu_backend's open() takes it). -EOPNOTSUPP: the driver tells of none of them;
 * -ENODEV: there is no driver.
 */
int xid_watch_open(const char *library, struct xid_watch **ret, struct error *err);
/* NULL is fine; returns NULL. */
struct xid_watch *xid_watch_close(struct xid_watch *watch);

/* Waits for the next one: 0; -ETIMEDOUT: none came; -EIO: the driver says neither. */
int xid_watch_wait(struct xid_watch *watch, unsigned timeout_ms, struct xid_event *ret);

/*
 * True where the program is at fault, and the card is as good as before: a fault of its addresses, of its
 * instructions, its end. Pure.
 */
bool xid_is_programs(uint64_t xid);

#endif
