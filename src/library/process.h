/*
 * The root of the library in a process. The root joins the tenant, moves to a restarted daemon, joins again in a
 * forked child, gives the helper thread its work, and stops the helper at exit. The root knows the library's parts;
 * the parts do not know the root.
 */
#pragma once

#include "library/state/process_state.h"

/*
 * Joins the tenant, if one is configured and this process (or this fork) has not joined yet. Blocks for up to 30 s
 * while no daemon answers. Thread safe; never called on the hot path.
 */
enum process_mode process_join(void);

/* Maps a restarted daemon's files. Returns false if no daemon answers now. Thread safe. */
bool process_rejoin(void);
