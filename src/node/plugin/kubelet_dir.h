/*
 * The directory in which kubelet and plugins have their sockets: who comes and goes in it, by inotify. It may
 * not be there yet, and may be removed: it is looked for each second then. Main thread only.
 */
#ifndef ALLOT_NODE_PLUGIN_KUBELET_DIR_H
#define ALLOT_NODE_PLUGIN_KUBELET_DIR_H

#include "net/loop.h"

#define KUBELET_SOCKET "kubelet.sock"

enum kubelet_dir_event {
	KUBELET_DIR_KUBELET_CAME, /* its socket was made, or stands there at the start */
	KUBELET_DIR_KUBELET_LEFT, /* its socket or the directory was removed */
	KUBELET_DIR_OWN_LEFT,     /* the plugin's was removed, by whomever, us too */
};

typedef void (*kubelet_dir_handler)(void *data, enum kubelet_dir_event event);

struct kubelet_dir;

/* `dir` and `own` (the name of the plugin's socket in it) stay the caller's. What is there is told of in the loop's next turn. */
int kubelet_dir_watch(struct loop *loop, const char *dir, const char *own,
		      kubelet_dir_handler handler, void *data, struct kubelet_dir **ret,
		      struct error *err);
/* NULL is fine; returns NULL. */
struct kubelet_dir *kubelet_dir_free(struct kubelet_dir *k);

#endif
