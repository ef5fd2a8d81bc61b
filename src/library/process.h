/*
 * The library's root (process.c) joins the process to its tenant, and rejoins when the daemon restarts and in a forked child.
 * The root gives the helper thread its work, and stops that thread at exit. The root calls the library's other parts; of these,
 * only the hooks (entry/) call the root.
 */
#pragma once

#include "library/state/process_state.h"

/*
 * Joins the tenant if one is configured and this process has not joined yet. Blocks for up to 30 s while no daemon answers.
 * Returns the process's mode afterwards, never PROCESS_UNKNOWN. Thread safe.
 */
enum process_mode process_join(void);

/* Asks a restarted daemon for its files and maps them. Returns false if no daemon answers. Thread safe. */
bool process_rejoin(void);
