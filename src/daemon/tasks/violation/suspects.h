/*
 * The processes that are being looked at, and those of them that offend: a list by pid. Between violations.c,
 * which decides who is one, and offenders.c, which does something about them. Main thread only.
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
	uint64_t start_time; /* with the pid, names it for good */
	char name[SUSPECT_NAME_MAX];
	bool is_seen;        /* in the census that is gone through */
	uint64_t held_bytes; /* on all cards, by that */
	bool is_ours;        /* never an offender */
	struct violation_track track;
	const char *how; /* the sign that told its tenant; NULL: none did ... */
	char owner[REGION_NAME_MAX];
	unsigned looks_left; /* ... until they are read again */

	bool is_offender; /* what is below is its */
	enum violation_reason reason;
	char tenant[REGION_NAME_MAX];
	enum on_violation own_wanted; /* of its tenant, last known */
	int pidfd;
	struct loop_source *source;
	bool is_pardoned, is_stopped, is_told_to_end, is_killed;
	bool no_container;                /* it can't be frozen as one, or not any more */
	char container[CONTAINER_ID_MAX]; /* frozen for it; "": none */
	uint64_t told_ns;
};

TAILQ_HEAD(suspect_list, suspect);

struct violations {
	struct node *node;
	struct suspect_list list;
	unsigned count;
	bool is_host; /* this process has the machine's own pid namespace: the driver's pids are ours */
	bool said_failure;
	struct loop_source *timer; /* who was told to end and has not */
	struct violations_figures figures;
};

/* NULL: there is none of that pid. */
struct suspect *suspects_find(const struct violations *v, int pid);
/* One of that pid, made where there is none. NULL: it is gone, or there are SUSPECTS_MOST. */
struct suspect *suspects_get(struct violations *v, int pid);
/* Watches for its end, when it is removed. -ESRCH: it is gone. */
int suspects_watch(struct suspect *s);
/* Forgets it, whatever was done about it. */
void suspects_remove(struct suspect *s);

/* Does what is due about each offender. */
void offenders_act(struct violations *v);
/* Lets it go on, where it was held. */
void offenders_let_go(struct suspect *s);
/* Writes down who is stopped now, so that the next daemon knows. */
void offenders_write_list(struct violations *v);
/* "reported", "frozen", "stopped", "ending", "resumed". */
const char *offenders_action(const struct suspect *s);
/* In the audit log: this was done about it. */
void offenders_note(const struct suspect *s, const char *action);
