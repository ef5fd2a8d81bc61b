/* The directory for state that must survive a reboot. Main thread only. */
#pragma once

#include "base/error.h"

struct node;

#define STATE_DIR_MAX 256
#define STATE_DIR_SYSTEM "/var/lib/allot"

/*
 * Returns the setting `state_dir`. "auto" is /var/lib/allot/<hardware> for the system daemon (run directory
 * /run/allot/<hardware>). For any other daemon it is the run directory, because that daemon's containers do not survive a
 * reboot. Pure.
 */
void state_dir_find(const struct node *node, char ret_dir[STATE_DIR_MAX]);

/* Makes the directory and its parents. Returns -EPERM if another user owns it or may write to it, or another -errno. */
int state_dir_make(const struct node *node, const char *dir, struct error *err);
