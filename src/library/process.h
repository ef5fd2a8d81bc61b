/*
 * The root of the library joins the process to its tenant, and rejoins when the daemon restarts and in a forked child. It gives
 * the helper thread its work, and stops that thread at exit. It calls the library's other parts, of which only the hooks
 * (entry/) call it.
 */
#pragma once

#include "library/state/process_state.h"

/* Joins the tenant, if any. Blocks for up to 30 s if no daemon answers. Never returns PROCESS_UNKNOWN. Thread safe. */
enum process_mode process_join(void);

/* Asks a restarted daemon for its files and maps them. Returns false if no daemon answers. Thread safe. */
bool process_rejoin(void);
