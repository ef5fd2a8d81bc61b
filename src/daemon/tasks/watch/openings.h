/*
 * Reports which processes open a device node. fanotify reports the opening itself; on a GPU that is
 * 90 ms or more before the process holds memory. It needs CAP_SYS_ADMIN. For device nodes, fanotify
 * reports only file handles (FAN_REPORT_FID, Linux 5.1; on a devtmpfs 5.13) and cannot block the
 * opening (measured on Linux 6.18; see fanotify_group_event_mask() in
 * fs/notify/fanotify/fanotify.c).
 *
 * A container may have a node of its own instead of the host's (runc makes one; the NVIDIA runtime
 * mounts the host's). Such a node must be watched too. To find it, the process connector
 * (CAP_NET_ADMIN, the host's network namespace) reports each exec. Then the nodes in the process's
 * mount namespace are looked up and watched, unless that was done within the last second. Without
 * the connector, all processes are scanned once a second instead.
 *
 * Main thread only.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "net/loop.h"

#define OPENINGS_MAX_NODES 4

struct openings;

/*
 * Called when a process has opened one of the nodes. The process may have ended already. `pid` is
 * never this process.
 */
typedef void (*openings_handler)(void *data, int pid);

/*
 * Watches the nodes of these comma-separated paths (at most OPENINGS_MAX_NODES), in all mount
 * namespaces. A node that is missing now is watched once it exists. If watching is impossible,
 * returns -EPERM or another -errno, and one line of text on what is missing.
 */
int openings_start(struct loop *loop, const char *paths, openings_handler handler, void *data,
		   struct openings **ret, struct error *err);
/* NULL is allowed; returns NULL. */
struct openings *openings_stop(struct openings *openings);

/*
 * Whether the process connector works, so that new mount namespaces are found at once. Without it,
 * they are found within a second.
 */
bool openings_has_connector(const struct openings *openings);
