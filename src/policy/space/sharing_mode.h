/*
 * How a tenant shares its card: in turns with all others (time), or at the same time as the other tenants of its group (space),
 * as a client of one MPS server. This file has what a tenant asks for, and the decision. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

#define SPACE_GROUP_MAX 160 /* size of a group's full name, its NUL included */
#define SPACE_FAULT_MAX 256
#define SPACE_FAULT_KINDS 5
#define SPACE_GONE_PIDS 8
#define SPACE_NAME_MAX 64 /* size of the name that a user gives to a group */
#define SPACE_LIMIT_MIN_PCT \
	1.0 /* below this, on a card of unknown size, MPS may round to no SM at all */

enum sharing_way { SHARING_TIME, SHARING_SPACE };

/* What the tenant asks for. */
struct sharing_wish {
	bool has_way; /* if false, the daemon's setting decides */
	enum sharing_way way;
	char group[SPACE_NAME_MAX]; /* "" if none was named */
};

/* Facts that sharing_choose() depends on. */
struct sharing_facts {
	enum sharing_way setting; /* of the daemon */
	uid_t uid;
	const char *namespace_name; /* Kubernetes namespace; "" if none */
	unsigned device_count;
	double limit_pct;    /* cap on its one card */
	unsigned sms;        /* SMs of that card or MIG instance; 0 if unknown */
	bool is_movable;     /* its memory may be moved off the card */
	bool has_leases;     /* the policy is lease */
	const char *missing; /* why MPS is not available on this machine; NULL if it is */
};

struct sharing_choice {
	enum sharing_way way;
	char group[SPACE_GROUP_MAX]; /* full name if the way is space, else "" */
};

/*
 * Decides how the tenant shares its card. Returns -EINVAL if the request contradicts itself or the facts, -EOPNOTSUPP if this
 * machine has no MPS. The error text says what to do.
 */
int sharing_choose(const struct sharing_wish *wish, const struct sharing_facts *facts,
		   struct sharing_choice *ret, struct error *err);

/* Returns "time" or "space"; parse_sharing() reads these names. */
const char *sharing_way_name(enum sharing_way way);

/* A group's identity: two groups with the same key are the same. */
struct space_key {
	unsigned card; /* the card's index */
	uid_t uid;
	const char *group; /* as in struct sharing_choice */
};

struct space_known {
	struct space_key key;
	unsigned number; /* number of the group, unique on its card, from 1 */
};

/*
 * Finds the group with this key in `list`. Writes its index to *ret_place and its number to *ret_number. If it is not in the
 * list, writes -1 and a number that is free on its card. Returns -EPERM if a user gave this name, and the group is another
 * user's.
 */
int space_find(const struct space_known *list, size_t count, const struct space_key *key,
	       int *ret_place, unsigned *ret_number, struct error *err);
