/*
 * What tenants do on their cards, added to what is known of their programs (programs.h): each second, and when one ends.
 * Of those that share by space, and of those that were left open to either way. Main thread only.
 */
#ifndef ALLOT_DAEMON_SPACE_MEASURE_H
#define ALLOT_DAEMON_SPACE_MEASURE_H

#include "daemon/state/tenant.h"

/* It is there, with its lessee. */
void measure_begin(struct tenant *tenant);
void measure_all(struct node *node);
/* Before its lessee goes. */
void measure_end(struct tenant *tenant);

#endif
