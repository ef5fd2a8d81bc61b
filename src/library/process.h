/*
 * The root of the library: joins the tenant, uses a restarted daemon's files, joins again in a forked child, gives the helper
 * thread its work, and stops that thread at exit. The root knows the library's parts; the parts do not know the root.
 */
#pragma once

#include "library/state/process_state.h"

/*
 * Joins the tenant if one is configured and this process has not joined yet. Blocks for up to 30 s while no daemon answers.
 * Thread safe.
 */
enum process_mode process_join(void);

/* Maps a restarted daemon's files. Returns false if no daemon answers. Thread safe. */
bool process_rejoin(void);
