/* Shared by the files of an MPS group: group.c starts and ends its control daemon, group_watch.c watches it. */
#pragma once

#include "daemon/space/group_state.h"

/* Handlers of the group's timer and its control daemon's pidfd. */
void mps_watch_due(void *data, uint32_t events);
void mps_control_exited(void *data, uint32_t events);

/* Sends a command to the control daemon, as the group's user. `done` gets the group as data. Returns 0 or -errno. */
int mps_run_command(struct mps_group *group, const char *command, uint64_t timeout_ns,
		    mps_command_done done);

/* mps_fail() puts the group into MPS_FAILED and reports the fault; mps_report_fault() only reports a fault. */
void mps_fail(struct mps_group *group, const char *why);
void mps_report_fault(struct mps_group *group, enum mps_fault fault, int pid, const char *what);

/* Kills the servers, then the control daemon. */
void mps_kill(struct mps_group *group);
/* Kills a control daemon that cannot reliably take clients; another is then started. */
void mps_kill_to_restart(struct mps_group *group);
/* Remembers a server that may still run after its control daemon has ended, or after mps_scan() has ceased to list it. */
void mps_add_old_server(struct mps_group *group, const struct mps_server *server);
/* Call when the control daemon has ended: starts another, ends the group or reports a failure. */
void mps_handle_exit(struct mps_group *group);
/*
 * Starts a control daemon if all servers of earlier control daemons have ended, or OVER_NS has passed (group.c). Otherwise the
 * group's timer calls this function again.
 */
void mps_restart_when_clear(struct mps_group *group);
/* Returns true for SETTLE_NS after a restart began: a start that fails in this time is retried. */
bool mps_is_settling(const struct mps_group *group);
