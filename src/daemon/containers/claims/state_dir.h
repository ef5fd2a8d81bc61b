/* The directory for state that must survive a reboot. Main thread only. */
#pragma once

#include "base/error.h"

struct node;

#define STATE_DIR_MAX 256
#define STATE_DIR_SYSTEM "/var/lib/allot"

/*
 * Returns the setting `state_dir`. For "auto": /var/lib/allot/<hardware> for the system daemon,
 * whose run directory is /run/allot/<hardware>, and the run directory for any other daemon, because
 * a private daemon's containers do not survive a reboot. Pure.
 */
void state_dir_find(const struct node *node, char ret_dir[STATE_DIR_MAX]);

/*
 * Makes the directory and its parents. Returns -EPERM if it belongs to another user or other users
 * may write to it, or another -errno of the system.
 */
int state_dir_make(const struct node *node, const char *dir, struct error *err);
