/*
 * What a group has on disk, below "<run dir>/mps":
 *
 *   <id>.json    what it is, and its control daemon's process: for the daemon after this one
 *   <id>/pipe    where its control daemon listens: the one thing that clients get to see
 *   <id>/log     what control daemon and servers write
 *
 * The id is "<card's index>-<number>". What is in pipe is the tenants' user's, and is deleted without following a link.
 * Main thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "daemon/state/node/node.h"
#include "policy/space/choice.h"

#define MPS_ID_MAX 24

/* As in its file. */
struct mps_record {
	char id[MPS_ID_MAX];
	struct card *card;
	uid_t uid;
	char group[SPACE_GROUP_MAX];
	unsigned number;
	int pid; /* of its control daemon; 0: none */
	uint64_t start_time;
};

/* leaf: "", ".json", "/pipe" ... */
void mps_path(const struct node *node, const char *id, const char *leaf, char path[NODE_PATH_MAX]);

/* "<run dir>/mps" itself; clients of other users pass through it, and can't list it. */
int mps_make_top(const struct node *node, struct error *err);

/*
 * The group's directories. is_open: its clients are of any user, in containers that have the pipe directory mounted; then
 * nobody else gets to it.
 */
int mps_make_dirs(const struct node *node, const struct mps_record *record, bool is_open,
		  struct error *err);
/* Deletes all of it; what can't be is logged. */
void mps_delete(const struct node *node, const char *id);

/* An empty log, open for appending by us and by whom it is handed to; and for reading. */
int mps_open_log(const struct node *node, const char *id, bool is_new, struct error *err);

int mps_save(const struct node *node, const struct mps_record *record, struct error *err);
/* Calls found(data) with each group of the daemon before whose card is there; the files of others are deleted. */
void mps_load_all(struct node *node, void (*found)(void *data, const struct mps_record *record),
		  void *data);
