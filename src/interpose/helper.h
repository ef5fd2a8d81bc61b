/*
 * The helper thread: one per process, started with the first context. It sees work end, tells the
 * daemon so through the report, notices a dead daemon and joins its successor. It sleeps in the
 * kernel while nothing is in flight (20 wakes a second, for the end of the daemon and its orders).
 */
#ifndef ALLOT_INTERPOSE_HELPER_H
#define ALLOT_INTERPOSE_HELPER_H

#include <stdbool.h>

/* Starts it unless it runs. Signals stay the program's: the thread blocks them all. */
void helper_start(void);

/* Look now: work has begun after a pause, or a thread begins to wait for own work. Cheap when it is awake already. */
void helper_wake(void);

/* While the daemon is lost: may device `index` work, by the tenant's own cap? */
bool helper_local_cap_allows(int index);

/* In a forked child, which has no such thread. */
void helper_reset(void);

#endif
