/*
 * Watches, with inotify, the directory in which the kubelet and plugins have their sockets. The directory may not exist yet, and
 * may be removed or replaced, so each second we check whether its path leads to another directory. Main thread only.
 */
#pragma once

#include "net/loop.h"

#define KUBELET_SOCKET "kubelet.sock"

enum kubelet_dir_event {
	/* the kubelet's socket was created, or exists already when the watch of the directory begins */
	KUBELET_DIR_KUBELET_CAME,
	KUBELET_DIR_KUBELET_LEFT, /* the kubelet's socket or the directory was removed */
	KUBELET_DIR_OWN_LEFT,     /* the plugin's socket was removed, possibly by us */
	/*
	 * The directory is mounted into our container, and was removed outside. A new directory at the same path outside
	 * becomes visible to us only when it is mounted into the container again.
	 */
	KUBELET_DIR_REMOVED_OUTSIDE,
};

typedef void (*kubelet_dir_handler)(void *data, enum kubelet_dir_event event);

struct kubelet_dir;

/*
 * Starts to watch `dir`. `dir` and `own` (the name of the plugin's socket in `dir`) must stay valid. If the directory or the
 * kubelet's socket exists already, their events come in the loop's next turn.
 */
int kubelet_dir_watch(struct loop *loop, const char *dir, const char *own,
		      kubelet_dir_handler handler, void *data, struct kubelet_dir **ret,
		      struct error *err);
/* Stops watching. NULL is fine; returns NULL. */
struct kubelet_dir *kubelet_dir_free(struct kubelet_dir *k);
