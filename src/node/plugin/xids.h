/*
 * Listens to the cards' Xid errors (gpu/xid.h) in a thread of its own, and tells of those that are not a program's
 * in the main thread.
 */
#ifndef ALLOT_NODE_PLUGIN_XIDS_H
#define ALLOT_NODE_PLUGIN_XIDS_H

#include <stdint.h>

#include "base/error.h"
#include "net/loop.h"
#include "node/plugin/slices.h"

struct xids;

typedef void (*xids_handler)(void *data, unsigned card, uint64_t xid);

/* `slices` stays the caller's, and is not changed: its cards are told of. Errors as xid_watch_open()'s. */
int xids_start(struct loop *loop, const char *library, const struct slices *slices,
	       xids_handler handler, void *data, struct xids **ret, struct error *err);
/* Waits for the thread: 0.2 s at most. NULL is fine; returns NULL. */
struct xids *xids_stop(struct xids *xids);

#endif
