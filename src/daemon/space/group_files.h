/*
 * The files of a group that shares a card by MPS (group.h), below "<run dir>/mps":
 *
 *   <id>.json    the group and its control daemon's process, for the next daemon
 *   <id>/pipe    where the control daemon listens; clients see only this directory
 *   <id>/log     log of control daemon and servers
 *
 * The id is "<card's index>-<number>". Files in pipe belong to the tenants' user, and are deleted without following links. Main
 * thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "daemon/state/node/node.h"
#include "policy/space/sharing_mode.h"

#define MPS_ID_MAX 24

/* the contents of the .json file */
struct mps_record {
	char id[MPS_ID_MAX];
	struct card *card;
	uid_t uid;
	char group[SPACE_GROUP_MAX];
	unsigned number;
	int pid; /* pid of the control daemon; 0: none */
	uint64_t start_time;
};

/* Writes the path of a group's file. leaf: "", ".json", "/pipe" etc. */
void mps_path(const struct node *node, const char *id, const char *leaf, char path[NODE_PATH_MAX]);

/* Makes "<run dir>/mps". Unless the daemon is private, other users' clients can enter this directory, but not list it. */
int mps_make_root_dir(const struct node *node, struct error *err);

/*
 * Makes the group's directories. is_open: clients of any user id may use the pipe directory, which is then reachable only by
 * containers that mount it.
 */
int mps_make_dirs(const struct node *node, const struct mps_record *record, bool is_open,
		  struct error *err);
/* Deletes a group's files, and logs those that cannot be deleted. */
void mps_delete_files(const struct node *node, const char *id);

/* This process and the control daemon share the descriptor. `is_new`: replaces the file. Returns the descriptor or -errno. */
int mps_open_log(const struct node *node, const char *id, bool is_new, struct error *err);

int mps_save(const struct node *node, const struct mps_record *record, struct error *err);
/*
 * Calls found(data) for each group of the previous daemon. Deletes the files of a group whose card is gone, or whose .json file
 * is invalid.
 */
void mps_load_all(struct node *node, void (*found)(void *data, const struct mps_record *record),
		  void *data);
