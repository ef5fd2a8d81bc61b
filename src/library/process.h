/*
 * The root of the library in a process: joins the tenant, follows a restarted daemon, starts anew in a forked child, gives
 * the helper thread its work, and leaves at exit. It knows the parts; they don't know it.
 */
#pragma once

#include "library/state/process_state.h"

/*
 * Joins the tenant, if one is configured and this process (or this fork of it) has not yet. Blocks
 * up to 30 s while no daemon answers. Thread safe; called off the hot path.
 */
enum process_mode process_join(void);

/* Adopts a restarted daemon's files; false when none answers now. Thread safe. */
bool process_rejoin(void);
