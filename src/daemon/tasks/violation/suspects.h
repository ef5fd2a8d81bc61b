/*
 * Suspects are processes that may bypass allot's library; offenders are suspects found to bypass it. This module keeps
 * suspects by pid; violations.c decides which are offenders, and offenders.c acts against them. Main thread only.
 */
#pragma once

#include <sys/queue.h>
#include <sys/types.h>

#include "daemon/util/container.h"
#include "daemon/state/node/node.h"
#include "net/loop.h"
#include "policy/safety/violation_policy.h"

#define SUSPECT_NAME_MAX 16
#define SUSPECTS_MOST 4096

struct suspect {
	TAILQ_ENTRY(suspect) link;
	struct violations *violations;
	int pid;
	uint64_t start_time; /* with the pid, identifies the process */
	char name[SUSPECT_NAME_MAX];
	bool is_seen;                /* the present census shows it */
	uint64_t held_bytes;         /* memory on all cards together, by that census */
	bool is_ours;                /* a process that is never an offender, such as this daemon */
	const char *how;             /* the sign by which the tenant was found; NULL: none */
	char owner[REGION_NAME_MAX]; /* name of the tenant to which the signs point; "": none */
	unsigned censuses_left;      /* censuses until the signs are read again */
	bool is_failure_logged;      /* a failure to watch the process was logged */

	bool is_offender; /* if true, the following fields are valid */
	enum violation_reason reason;
	char tenant[REGION_NAME_MAX];
	uint32_t log_key;             /* tenant_log_key(), also after the tenant has ended */
	enum on_violation own_wanted; /* the tenant's action on violations, as last known */
	int pidfd;
	struct loop_source *source;
	bool is_pardoned, is_stopped, is_terminated, is_killed;
	/* freezing the container failed, so the process itself is stopped */
	bool no_container;
	/* container that was frozen because of the suspect; "": none */
	char container[CONTAINER_ID_MAX];
	uint64_t terminated_ns;
};

TAILQ_HEAD(suspect_list, suspect);

struct violations {
	struct node *node;
	struct suspect_list list;
	unsigned count;
	/* this process is in the machine's pid namespace, so the driver's pids are valid here */
	bool is_host;
	/* the driver's pids are valid here: because of is_host, or as the last census of all cards showed */
	bool are_pids_ours;
	bool is_failure_logged;
	bool is_unread_logged;     /* a failure of suspects_get() is logged */
	struct loop_source *timer; /* for offenders that were told to end and still run */
	struct violations_figures figures;
};

struct suspect *suspects_find(const struct violations *v, int pid);
/* Finds or makes the suspect. Returns NULL if the process is gone, or after another failure, which it logs once. */
struct suspect *suspects_get(struct violations *v, int pid);
/* Watches for the process's end, which removes the suspect. Returns -ESRCH if the process is gone, or another -errno. */
int suspects_watch(struct suspect *s);
/* Undoes no action. */
void suspects_remove(struct suspect *s);

/* Takes the action that is due against each offender. */
void offenders_act(struct violations *v);
/*
 * Lets the process continue if it was frozen or stopped. Its container stays frozen if it is frozen for another suspect too.
 * Returns -errno if the container cannot be thawed yet.
 */
int offenders_resume(struct suspect *s, struct error *err);
/* Saves which processes are stopped, for the next daemon. */
void offenders_write_list(struct violations *v);
/* Returns the last action: "reported", "frozen", "stopped", "ending" or "resumed". */
const char *offenders_action(const struct suspect *s);
/* Records an action in the audit log. */
void offenders_note(const struct suspect *s, const char *action);
