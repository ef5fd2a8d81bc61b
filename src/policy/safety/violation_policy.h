/*
 * Which processes bypass the library, and what to do about them: plain data in, decisions out.
 *
 * A GPU process belongs to a tenant by registering. A process that holds a card's memory and never registered still belongs to
 * a tenant if a sign says so, and is then an offender. So is a process that holds more than its ledger says, and the largest
 * process of a tenant that holds more than its quota. One census alone proves nothing: a process that was just forked, is
 * about to register, or was seen at a bad moment looks the same.
 *
 * Pure; thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define VIOLATION_LOOKS 3 /* censuses in a row that must show the violation */
/* The violation must also last for this many times the interval between two censuses, because some censuses come early. */
#define VIOLATION_INTERVALS 2
#define VIOLATION_END_NS UINT64_C(5000000000) /* time from SIGTERM to SIGKILL */

struct tenant;

enum violation_reason {
	VIOLATION_UNREGISTERED,
	VIOLATION_OVER_LEDGER,
	VIOLATION_OVER_QUOTA,
	VIOLATION_REASONS
};
/* From the mildest to the strictest. */
enum on_violation { ON_VIOLATION_REPORT, ON_VIOLATION_FREEZE, ON_VIOLATION_END };

/* Returns "unregistered", "over_ledger" or "over_quota". */
const char *violation_reason_name(enum violation_reason reason);
/*
 * on_violation_name() returns "report", "freeze" or "end". on_violation_parse() reads these names and returns -EINVAL for
 * another text.
 */
const char *on_violation_name(enum on_violation what);
int on_violation_parse(const char *text, enum on_violation *ret);
/* Returns the stricter of the two. */
enum on_violation on_violation_stricter(enum on_violation a, enum on_violation b);

/* Signs that tell which tenant an unregistered process belongs to. A sign that says nothing is NULL. */
struct violation_signs {
	/* The process is a process of the tenant, or descends from one. */
	const struct tenant *by_descent;
	/* The tenant's socket is mounted in the process's file system. */
	const struct tenant *by_mount;
	/* The process is in, or below, a container that only this tenant uses. */
	const struct tenant *by_container;
	/* Its environment names the tenant's socket, and it has the tenant's user. */
	const struct tenant *by_environment;
};
/*
 * Returns the tenant of the first sign that is not NULL, in the order above, and writes to *ret_how, in words, which sign it
 * was. Returns NULL if no sign names a tenant.
 */
const struct tenant *violation_owner(const struct violation_signs *signs, const char **ret_how);

/* What one census shows of a process that has not registered. */
struct violation_look {
	/* the driver's list can be believed, and all tenants' processes have registered again after a restart of the daemon */
	bool is_sound;
	bool is_listed;  /* the driver lists the process as holding memory of a card */
	bool is_stopped; /* the process can't run, so it can't register either */
	bool is_away;    /* the process is checkpointed, or about to be */
	bool has_owner;
};
/* All zero means that no census has shown the process yet. */
struct violation_track {
	unsigned looks;
	uint64_t since_ns;
};
/*
 * Records what a census showed. least_ns is how long the violation must have lasted. Returns true once it is confirmed. A
 * census that can't be believed neither counts nor resets the count.
 */
bool violation_confirm(struct violation_track *track, const struct violation_look *look,
		       uint64_t now_ns, uint64_t least_ns);

enum violation_step {
	VIOLATION_LEAVE,
	VIOLATION_FREEZE, /* freeze its container's cgroup */
	VIOLATION_STOP,   /* send SIGSTOP to the process */
	VIOLATION_TERM,
	VIOLATION_KILL,
};
/* What is known of an offender. */
struct violation_case {
	enum on_violation wanted;
	bool is_pardoned;       /* a user allowed it to go on */
	bool is_untouchable;    /* this daemon, an ancestor of it, or the first process */
	bool has_own_container; /* its container belongs to that tenant alone, and can be frozen */
	bool is_frozen, is_stopped; /* frozen or stopped by this daemon, as seen now */
	bool is_told_to_end;
	uint64_t told_ns;
};
/* Returns what to do now. */
enum violation_step violation_next(const struct violation_case *c, uint64_t now_ns);

/* Total counts of what was done, and of what failed. */
struct violations_figures {
	uint64_t frozen, stopped, told_to_end, killed, failed;
};
