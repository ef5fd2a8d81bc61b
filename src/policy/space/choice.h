/*
 * How a tenant shares its card: in turns with all others (time), or at the same time as the others of its group (space), as a
 * client of one MPS server. This is what is asked for, and what is made of it. Pure.
 *
 * A group is a set of tenants that accept a common fate: a fault of one may end the MPS server, and with it the work of all.
 * So a group is of one user, or of one Kubernetes namespace, and of one card. A name sets tenants apart within that.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

#define SPACE_GROUP_MAX 160 /* of a group's full name, its NUL included */
#define SPACE_FAULT_MAX 256
#define SPACE_FAULT_KINDS 5
#define SPACE_GONE_PIDS 8
#define SPACE_NAME_MAX 64 /* of the name that was given to it */
#define SPACE_LIMIT_MIN_PCT \
	1.0 /* below, of a card of unknown size, MPS may round to no SM at all */

enum sharing_way { SHARING_TIME, SHARING_SPACE };

/* As asked for. */
struct sharing_wish {
	bool has_way; /* else as the setting says */
	enum sharing_way way;
	char group[SPACE_NAME_MAX]; /* "": none was named */
};

/* What it is decided by. */
struct sharing_facts {
	enum sharing_way setting; /* of the daemon */
	uid_t uid;
	const char *namespace_name; /* of Kubernetes; "": none */
	unsigned device_count;
	double limit_pct;    /* of its one card */
	unsigned sms;        /* of that card or MIG instance; 0: not known */
	bool is_movable;     /* its memory may be moved off the card */
	bool has_leases;     /* the policy is lease */
	const char *missing; /* why there is no MPS here; NULL: there is */
};

struct sharing_choice {
	enum sharing_way way;
	char group[SPACE_GROUP_MAX]; /* of space; else "" */
};

/*
 * -EINVAL: what was asked for contradicts itself or the other terms; -EOPNOTSUPP: this machine can't. The text says what
 * to do.
 */
int sharing_choose(const struct sharing_wish *wish, const struct sharing_facts *facts,
		   struct sharing_choice *ret, struct error *err);

/* "time" or "space"; parse_sharing() reads it. */
const char *sharing_way_name(enum sharing_way way);

/* A group as it is known by: two of the same key are one. */
struct space_key {
	unsigned card; /* its index */
	uid_t uid;
	const char *group; /* as in struct sharing_choice */
};

struct space_known {
	struct space_key key;
	unsigned number; /* of its card, from 1 */
};

/*
 * Which of the known groups this is: its place in the list, or -1: none yet, and *ret_number is free on the card. -EPERM:
 * a group of that given name is another user's.
 */
int space_find(const struct space_known *list, size_t count, const struct space_key *key,
	       int *ret_place, unsigned *ret_number, struct error *err);
