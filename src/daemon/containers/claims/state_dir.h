/* Where the daemon keeps what must outlive a reboot. Main thread only. */
#pragma once

#include "base/error.h"

struct node;

#define STATE_DIR_MAX 256
#define STATE_DIR_SYSTEM "/var/lib/allot"

/*
 * The setting `state_dir`, or for `auto`: of the system daemon in /run/allot/<hardware>
 * /var/lib/allot/<hardware>, of any other its run directory: what runs in a private daemon's containers
 * is over after a reboot. Pure.
 */
void state_dir_find(const struct node *node, char ret_dir[STATE_DIR_MAX]);

/*
 * Makes it, with what is above it. -EPERM: somebody else's, or others may write to it; others as the
 * system said.
 */
int state_dir_make(const struct node *node, const char *dir, struct error *err);
