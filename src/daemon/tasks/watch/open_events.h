/*
 * Reports which processes open a GPU's device node, by fanotify. On a GPU the report comes at least 90 ms before a process
 * holds memory. Needs CAP_SYS_ADMIN. For device nodes fanotify gives only file handles (FAN_REPORT_FID, Linux 5.1; on a
 * devtmpfs 5.13) and cannot block the opening (fs/notify/fanotify/fanotify.c, fanotify_group_event_mask()).
 *
 * A container may have a node of its own (runc makes one; the NVIDIA runtime mounts the host's). So at each exec, the nodes of
 * that process's mount namespace are marked for watching, unless that was done in the last second. The process connector
 * reports execs (CAP_NET_ADMIN, the host's network namespace); without it, all processes are scanned each second. Main thread
 * only.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "net/loop.h"

#define OPEN_EVENTS_MAX_NODES 4

struct open_events;

/* Called when a process has opened one of the nodes; the process may have ended since. `pid` is never this process. */
typedef void (*open_events_handler)(void *data, int pid);

/*
 * Watches comma-separated paths, at most OPEN_EVENTS_MAX_NODES, in all mount namespaces; also nodes that appear later. Returns
 * -EPERM or another -errno; the error says what is missing.
 */
int open_events_start(struct loop *loop, const char *paths, open_events_handler handler, void *data,
		      struct open_events **ret, struct error *err);
/* Stops watching. NULL is allowed; returns NULL. */
struct open_events *open_events_stop(struct open_events *open_events);

/* Returns true if the process connector works. Without it, new mount namespaces are found within a second. */
bool open_events_has_connector(const struct open_events *open_events);
