/* The state of one group's MPS control daemon (group.h), for group.c and group_watch.c. Main thread only. */
#pragma once

#include "daemon/space/mps_command.h"
#include "daemon/space/group_files.h"
#include "daemon/space/proc_scan.h"

#define MPS_WHY_MAX 256

enum mps_state {
	MPS_OFF,
	MPS_STARTING,
	MPS_READY,
	MPS_HUNG,   /* the control daemon or a server is stopped or does not answer */
	MPS_FAILED, /* could not be started; tried again when a member joins */
	MPS_ENDING, /* processes are ending, for good or before a restart */
};

enum mps_fault {
	MPS_FAULT_START,
	MPS_FAULT_CONTROL,
	MPS_FAULT_SERVER,
	MPS_FAULT_HUNG,
	MPS_FAULT_CLIENT, /* a client's work was discarded because of its own fault */
	MPS_FAULTS
};

struct mps_group;

/* A callback that reports a fault to the members, in one line. `pid`: the process concerned. */
typedef void (*mps_faulted)(struct mps_group *group, enum mps_fault fault, int pid,
			    const char *what);
/* A callback: the group has ended for good. The callee frees the group. */
typedef void (*mps_ended)(struct mps_group *group);

struct mps_group {
	struct mps_group *next;
	struct node *node;
	struct mps_record record;
	bool is_open;     /* clients of any user may connect (mps_make_dirs()) */
	unsigned members; /* number of tenants; set by space_groups.c */
	mps_faulted faulted;
	mps_ended ended;

	enum mps_state state;
	/* why the group is MPS_HUNG or MPS_FAILED, or has been MPS_ENDING for too long */
	char why[MPS_WHY_MAX];
	char program[PATHS_MAX];
	int pidfd; /* of the control daemon's process */
	struct loop_source *source, *timer;
	struct mps_command *command;
	bool is_start_requested; /* the server was asked to start since MPS_STARTING began */
	uint64_t begun_ns, checked_ns;
	uint64_t again_ns; /* when restarting began; 0: not restarting */
	struct mps_processes scanned;
	/* servers of earlier control daemons that have not ended */
	struct mps_server old[MPS_SERVERS_MAX];
	unsigned old_count;
	unsigned stopped_scans; /* scans in a row that found a stopped process */
	/* pids: of the server that was last asked to quit, and of the server that was last found to have ended */
	int quitting, gone;
	/* faulty: pid of the server that last reported a fatal fault, 0: none; faulty_ns: when */
	int faulty;
	uint64_t faulty_ns;
	unsigned restarts;
	uint64_t restarts_since_ns;
	int log_fd;
	off_t log_at;
	size_t line_length;
	char line[512];
	char last_line[MPS_WHY_MAX]; /* last log line that reports a failure */
};
