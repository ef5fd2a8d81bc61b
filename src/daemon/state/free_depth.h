/*
 * How much work a tenant that runs alone may have in flight (LEASE_FREE): little where another tenant has a process on
 * the card, which may want it at any moment; much more where none has, as a newcomer needs a tenth of a second for its
 * context. The library counts such work coarsely: by a bound of `free_depth` alone trainings whose kernels are of
 * unlike lengths lost 4 to 5 % on an H200, with nobody else there. Main thread only.
 */
#ifndef ALLOT_DAEMON_STATE_FREE_DEPTH_H
#define ALLOT_DAEMON_STATE_FREE_DEPTH_H

#include "daemon/state/node/node.h"

/* Publishes it to all tenants. After a tenant or a process came, before it is told so, or went. */
void free_depth_publish(struct node *node);

#endif
