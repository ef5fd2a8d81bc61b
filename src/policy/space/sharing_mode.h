/*
 * Decides how a tenant shares its GPU: by time, in turns with others, or by space. By space, a group of tenants runs at the
 * same time, as clients of one MPS server. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

#define SPACE_GROUP_MAX 160 /* size of a group's full name, with the NUL */
#define SPACE_FAULT_MAX 256
#define SPACE_FAULT_KINDS 5
#define SPACE_GONE_PIDS 8
#define SPACE_NAME_MAX 64 /* size of the name that a user gives to a group */
/* Smallest cap on a GPU whose number of SMs is unknown: MPS could round a smaller cap down to no SM. */
#define SPACE_LIMIT_MIN_PCT 1.0

enum sharing_way { SHARING_TIME, SHARING_SPACE };

struct sharing_request {
	bool has_way; /* if false, the daemon's setting decides */
	enum sharing_way way;
	char group[SPACE_NAME_MAX]; /* "": none */
};

struct sharing_facts {
	enum sharing_way setting; /* the daemon's setting */
	uid_t uid;
	const char *namespace_name; /* in Kubernetes; "": none */
	unsigned device_count;
	double limit_pct;    /* the tenant's cap on its one GPU */
	unsigned sms;        /* SMs of the tenant's GPU or MIG instance; 0: unknown */
	bool is_movable;     /* the tenant's memory may be moved off the GPU */
	bool has_leases;     /* the arbiter's policy is lease */
	const char *missing; /* why this machine cannot run MPS; NULL if it can */
};

struct sharing_choice {
	enum sharing_way way;
	char group[SPACE_GROUP_MAX]; /* full name if the way is space, else "" */
};

/* -EINVAL if the request contradicts itself or the facts, -EOPNOTSUPP if it needs MPS and there is none. */
int sharing_choose(const struct sharing_request *request, const struct sharing_facts *facts,
		   struct sharing_choice *ret, struct error *err);

/* "time" or "space", the names that parse_sharing() reads. */
const char *sharing_way_name(enum sharing_way way);

/* A group's identity: groups with equal keys are the same. */
struct space_key {
	unsigned card;
	uid_t uid;
	const char *group; /* full name, as in struct sharing_choice */
};

struct space_known {
	struct space_key key;
	unsigned number; /* unique on its GPU, from 1 */
};

/*
 * Finds the group with this key: *ret_place is its index in `list`, *ret_number its number. If there is no such group,
 * *ret_place is -1, and *ret_number is unused on the GPU. Returns -EPERM if a user names another user's group.
 */
int space_find(const struct space_known *list, size_t count, const struct space_key *key,
	       int *ret_place, unsigned *ret_number, struct error *err);
