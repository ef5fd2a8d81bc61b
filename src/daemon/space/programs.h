/*
 * What is known of programs over their ends and the daemon's: what each uses of a card, and what its space groups
 * gained (gain.h). In "<run dir>/programs.json"; written a while after a change, and at the daemon's end.
 *
 * A program is whose it is and what it is called, as a job that is started again is: Kubernetes' namespace or the
 * user, and the tenant's name without what is made up for each start of it (a Deployment's and a Job's pods, an id at
 * the end). A tenant that nobody named is known by the command line that asked for it. Not by its executable: of
 * most jobs that is the same interpreter.
 *
 * Main thread only.
 */
#ifndef ALLOT_DAEMON_SPACE_PROGRAMS_H
#define ALLOT_DAEMON_SPACE_PROGRAMS_H

#include "daemon/state/node/node.h"
#include "policy/space/choice.h"
#include "policy/space/gain.h"

#define PROGRAMS_MAX 1024 /* of a node; who was not seen for longest is forgotten */

struct programs;

/* Reads the file. One that is not understood is set aside, with a line in the log. */
int programs_open(struct node *node, struct error *err);
void programs_close(struct node *node);

/* pid: who asked for a tenant that has no name of its own; 0: it has one. Pure but for that process's command line. */
void program_key(const char *namespace_name, uid_t uid, const char *name, int pid,
		 char ret[PROGRAM_KEY_MAX]);
/* NULL: nothing is known of it. Holds until the next call of programs_record(). */
const struct gain_record *programs_find(const struct node *node, const char *key);
/* Made where there is none. NULL: out of memory. */
struct gain_record *programs_record(struct node *node, const char *key);
/* Something of a record was changed. */
void programs_changed(struct node *node);

#endif
