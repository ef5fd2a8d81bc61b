/*
 * The directory in which kubelet and plugins have their sockets: what comes and goes in it, by inotify. It may
 * not be there yet, and may be removed or replaced: its path is looked up each second. Main thread only.
 */
#pragma once

#include "net/loop.h"

#define KUBELET_SOCKET "kubelet.sock"

enum kubelet_dir_event {
	KUBELET_DIR_KUBELET_CAME, /* its socket was made, or stands there at the start */
	KUBELET_DIR_KUBELET_LEFT, /* its socket or the directory was removed */
	KUBELET_DIR_OWN_LEFT,     /* the plugin's was removed, by whomever, us too */
	/* The directory is a mount of one that was removed: only what mounts it again sees the kubelet's new one. */
	KUBELET_DIR_REMOVED_OUTSIDE,
};

typedef void (*kubelet_dir_handler)(void *data, enum kubelet_dir_event event);

struct kubelet_dir;

/* `dir` and `own` (the name of the plugin's socket in it) stay the caller's. What is there is told of in the loop's next turn. */
int kubelet_dir_watch(struct loop *loop, const char *dir, const char *own,
		      kubelet_dir_handler handler, void *data, struct kubelet_dir **ret,
		      struct error *err);
/* NULL is fine; returns NULL. */
struct kubelet_dir *kubelet_dir_free(struct kubelet_dir *k);
