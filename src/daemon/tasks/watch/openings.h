/*
 * Who opens a device node: told by fanotify, at the opening itself, which on a GPU is 90 ms and more before
 * the process holds memory. It needs CAP_SYS_ADMIN. Device nodes are told of by file handle alone
 * (FAN_REPORT_FID, Linux 5.1; on a devtmpfs 5.13), and nobody can be held up at the opening of one:
 * measured on Linux 6.18, and so in fs/notify/fanotify/fanotify.c, fanotify_group_event_mask().
 *
 * A container may have a node of its own instead of the host's (runc makes one; the NVIDIA runtime mounts
 * the host's). So whatever begins a program is looked at by the process connector (CAP_NET_ADMIN, the
 * host's network namespace), and in a mount namespace not seen for a second the nodes are marked
 * too. Without the connector, all processes are looked through once a second.
 *
 * Main thread only.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "net/loop.h"

#define OPENINGS_MAX_NODES 4

struct openings;

/* A process has opened one of the nodes; it may be gone already. `pid` is never this process. */
typedef void (*openings_handler)(void *data, int pid);

/*
 * Watches the nodes of these paths (at most OPENINGS_MAX_NODES, comma-separated), here and in every
 * other mount namespace; a path without a node is looked for again. -EPERM and others: it can't be
 * done here, with one line that says what is missing.
 */
int openings_start(struct loop *loop, const char *paths, openings_handler handler, void *data,
		   struct openings **ret, struct error *err);
/* NULL is fine; returns NULL. */
struct openings *openings_stop(struct openings *openings);

/* Are new mount namespaces told of? Else they are found within a second. */
bool openings_has_connector(const struct openings *openings);
