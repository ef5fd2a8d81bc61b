/*
 * Who gets round the library, and what is done about it: plain data in, decisions out.
 *
 * A GPU process is a tenant's by registering. One that holds a card's memory and never registered belongs to
 * a tenant all the same when a sign says so, and offends; so does one that holds more than its ledger, and the
 * largest of a tenant that holds more than its quota. Nothing
 * follows from one look: what was just forked, is about to register or was seen at a bad moment looks the same.
 *
 * Pure; thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define VIOLATION_LOOKS 3 /* in a row that show it ... */
/* ... over this many times the time between two censuses at least: some come sooner than asked. */
#define VIOLATION_INTERVALS 2
#define VIOLATION_END_NS UINT64_C(5000000000) /* from SIGTERM to SIGKILL */

struct tenant;

enum violation_reason {
	VIOLATION_UNREGISTERED,
	VIOLATION_OVER_LEDGER,
	VIOLATION_OVER_QUOTA,
	VIOLATION_REASONS
};
/* From the mildest to the strictest. */
enum on_violation { ON_VIOLATION_REPORT, ON_VIOLATION_FREEZE, ON_VIOLATION_END };

/* "unregistered", "over_ledger", "over_quota". */
const char *violation_reason_name(enum violation_reason reason);
/* "report", "freeze", "end"; -EINVAL for another text. */
const char *on_violation_name(enum on_violation what);
int on_violation_parse(const char *text, enum on_violation *ret);
/* The stricter of two. */
enum on_violation on_violation_stricter(enum on_violation a, enum on_violation b);

/* What says whose a process is that never registered. NULL: that sign says nothing. */
struct violation_signs {
	const struct tenant *by_descent;   /* below its command, or a process of it */
	const struct tenant *by_mount;     /* its socket is mounted where the process lives */
	const struct tenant *by_container; /* in a container, or below one, of that tenant alone */
	const struct tenant *by_environment; /* names the tenant's socket, and is of its user */
};
/* The first sign counts, in that order; *ret_how says which it was, in words. NULL: nobody's. */
const struct tenant *violation_owner(const struct violation_signs *signs, const char **ret_how);

/* What one census shows of a process that has not registered. */
struct violation_look {
	bool is_sound; /* the driver's list can be believed, and no tenant's processes are moving over */
	bool is_listed;  /* the driver lists it as holding memory of a card */
	bool is_stopped; /* it can't run, so that it could not register either */
	bool is_away;    /* checkpointed, or on its way */
	bool has_owner;
};
/* All zero: not seen yet. */
struct violation_track {
	unsigned looks;
	uint64_t since_ns;
};
/*
 * Takes a look in; `least_ns`: over how long it must have been seen. True: confirmed. A look that can't be
 * believed neither counts nor takes back.
 */
bool violation_confirm(struct violation_track *track, const struct violation_look *look,
		       uint64_t now_ns, uint64_t least_ns);

enum violation_step {
	VIOLATION_LEAVE,
	VIOLATION_FREEZE, /* its container's cgroup */
	VIOLATION_STOP,   /* itself: SIGSTOP */
	VIOLATION_TERM,
	VIOLATION_KILL,
};
/* How it stands with an offender. */
struct violation_case {
	enum on_violation wanted;
	bool is_pardoned;           /* somebody let it go on */
	bool is_untouchable;        /* this daemon, what it descends from, or the first process */
	bool has_own_container;     /* that tenant's alone, and it can be frozen */
	bool is_frozen, is_stopped; /* by us, as far as can be seen now */
	bool is_told_to_end;
	uint64_t told_ns;
};
/* What to do now. */
enum violation_step violation_next(const struct violation_case *c, uint64_t now_ns);

/* What was done, ever; and what could not be. */
struct violations_figures {
	uint64_t frozen, stopped, told_to_end, killed, failed;
};
