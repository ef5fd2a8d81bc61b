/*
 * Watches by inotify the directory where the kubelet and plugins have their sockets. Since the directory may be missing,
 * removed or replaced, each second we check where its path leads. Main thread only.
 */
#pragma once

#include "net/loop.h"

#define KUBELET_SOCKET "kubelet.sock"

enum kubelet_dir_event {
	/* the kubelet's socket was created, or exists when the watch begins */
	KUBELET_DIR_KUBELET_STARTED,
	KUBELET_DIR_KUBELET_STOPPED, /* the kubelet's socket or the directory was removed */
	KUBELET_DIR_OWN_REMOVED,     /* the plugin's socket was removed, perhaps by this daemon */
	/* The directory was removed on the host. Our container must be restarted to see a new directory. */
	KUBELET_DIR_REMOVED_OUTSIDE,
};

typedef void (*kubelet_dir_handler)(void *data, enum kubelet_dir_event event);

struct kubelet_dir;

/*
 * Begins to watch `dir`. `dir` and `own` (file name of the plugin's socket in that directory) must stay valid. If the kubelet's
 * socket already exists, KUBELET_DIR_KUBELET_STARTED comes in the event loop's next iteration.
 */
int kubelet_dir_watch(struct loop *loop, const char *dir, const char *own,
		      kubelet_dir_handler handler, void *data, struct kubelet_dir **ret,
		      struct error *err);
/* Stops watching. NULL is allowed; returns NULL. */
struct kubelet_dir *kubelet_dir_free(struct kubelet_dir *k);
