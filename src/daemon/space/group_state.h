/*
 * What is known of one group's MPS control daemon: group.h starts and ends it, watch.c looks at it. Main thread only.
 */
#pragma once

#include "daemon/space/ask.h"
#include "daemon/space/files.h"
#include "daemon/space/proc_scan.h"

#define MPS_WHY_MAX 256

enum mps_state {
	MPS_OFF,
	MPS_STARTING,
	MPS_READY,
	MPS_HUNG,   /* it, or a server of it, is stopped or does not answer */
	MPS_FAILED, /* could not be started; the next member tries again */
	MPS_ENDING, /* its processes: for good, or for others with members */
};

enum mps_fault {
	MPS_FAULT_START,   /* it could not be started */
	MPS_FAULT_CONTROL, /* the control daemon ended */
	MPS_FAULT_SERVER,  /* a server ended */
	MPS_FAULT_HUNG,    /* one of them is stopped, or does not answer */
	MPS_FAULT_CLIENT,  /* a client's work was thrown away for a fault of its own */
	MPS_FAULTS
};

struct mps_group;

/* What the group's members are to be told, in a line; `pid`: of the process that it is about. */
typedef void (*mps_faulted)(struct mps_group *group, enum mps_fault fault, int pid,
			    const char *what);
/* It is off for good: nobody is in it. The callee frees it. */
typedef void (*mps_ended)(struct mps_group *group);

struct mps_group {
	struct mps_group *next; /* the owner's */
	struct node *node;
	struct mps_record record;
	bool is_open;     /* see files.h */
	unsigned members; /* the owner's: tenants */
	mps_faulted faulted;
	mps_ended ended;

	enum mps_state state;
	char why[MPS_WHY_MAX]; /* of MPS_HUNG and MPS_FAILED */
	char program[PATHS_MAX];
	int pidfd; /* of the control daemon */
	struct loop_source *source, *timer;
	struct mps_ask *ask;
	bool has_listed, has_asked_start; /* steps on the way from starting to ready */
	uint64_t begun_ns, asked_ns;
	uint64_t again_ns;                      /* since when it is to begin again; 0: it is not */
	struct mps_processes sight;             /* the last one */
	struct mps_server old[MPS_SERVERS_MAX]; /* of control daemons before, until they are over */
	unsigned old_count;
	unsigned stopped_looks; /* in a row */
	int quitting, gone; /* the last server that was asked to quit; that was seen to be gone */
	int faulty;         /* the last server that told of a fatal fault, 0: none; when: */
	uint64_t faulty_ns;
	unsigned restarts; /* since ... */
	uint64_t restarts_since_ns;
	int log_fd;
	off_t log_at;
	size_t line_length;
	char line[512];
	char last_line[MPS_WHY_MAX]; /* that tells of something gone wrong */
};
