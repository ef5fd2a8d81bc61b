/*
 * Decides which processes bypass the library, and the response to them, from plain data.
 *
 * Each GPU process of a tenant must register with the daemon. An offender is: an unregistered process that holds a GPU's memory
 * and by some sign belongs to a tenant; a process that holds more than its ledger, the memory that its library counts; the
 * largest process of a tenant above its quota; or the busiest process of a tenant that uses more GPU time than it is charged
 * for (time_policy.h). One census (list of GPU processes) proves nothing: a process that was just forked, or is about to
 * register, looks the same.
 *
 * No clock, no I/O, no static data. Only violation_confirm() changes an argument (`track`).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define VIOLATION_CENSUSES 3 /* censuses in a row that must show the violation */
/* A violation must also last for this many census intervals, because some censuses come early. */
#define VIOLATION_INTERVALS 2
#define VIOLATION_END_NS UINT64_C(5000000000) /* time from SIGTERM to SIGKILL */

struct tenant;

enum violation_reason {
	VIOLATION_UNREGISTERED,
	VIOLATION_OVER_LEDGER,
	VIOLATION_OVER_QUOTA,
	VIOLATION_OVER_TIME,
	VIOLATION_REASONS
};
/* from the mildest to the strictest */
enum on_violation { ON_VIOLATION_REPORT, ON_VIOLATION_FREEZE, ON_VIOLATION_END };

const char *violation_reason_name(enum violation_reason reason);
/* The names are "report", "freeze" and "end". Parsing another text returns -EINVAL. */
const char *on_violation_name(enum on_violation what);
int on_violation_parse(const char *text, enum on_violation *ret);
enum on_violation on_violation_stricter(enum on_violation a, enum on_violation b);

/* Signs of the tenant that an unregistered process belongs to. A sign that shows no tenant is NULL. */
struct violation_signs {
	/* the process is in the cgroup of the tenant's command */
	const struct tenant *by_cgroup;
	/* the process is, or descends from, a process of the tenant */
	const struct tenant *by_descent;
	/* the tenant's socket is mounted in the process's file system */
	const struct tenant *by_mount;
	/* the process is in or below a container that only this tenant uses */
	const struct tenant *by_container;
	/* the process's environment names the tenant's socket, and the process runs as the tenant's user */
	const struct tenant *by_environment;
};
/* Returns the tenant of the first sign in this order, or NULL. *ret_how says in words which sign it was. */
const struct tenant *violation_owner(const struct violation_signs *signs, const char **ret_how);

/* One census's observations of an unregistered process. */
struct violation_evidence {
	/* the driver's list is reliable and, if the daemon has restarted, all tenants' processes have registered again */
	bool is_sound;
	bool is_listed;  /* the driver lists the process as holding GPU memory */
	bool is_stopped; /* the process cannot run, so cannot register either */
	bool is_away;    /* the process is checkpointed, or about to be */
	bool has_owner;
};
/* All zero: no census has shown the process yet. */
struct violation_track {
	unsigned censuses;
	uint64_t since_ns;
};
/*
 * True once VIOLATION_CENSUSES censuses in a row have shown the violation, and it has lasted least_ns. Skips a census that is
 * unreliable (is_sound), or in which the listed process is stopped (is_stopped) or checkpointed (is_away). A skipped census
 * does not break the row.
 */
bool violation_confirm(struct violation_track *track, const struct violation_evidence *evidence,
		       uint64_t now_ns, uint64_t least_ns);

enum violation_step {
	VIOLATION_LEAVE,
	VIOLATION_FREEZE, /* freeze the cgroup of the process's container */
	VIOLATION_STOP,   /* send SIGSTOP */
	VIOLATION_TERM,
	VIOLATION_KILL,
};
struct violation_case {
	enum on_violation wanted;
	bool is_pardoned;           /* a user has permitted the process to go on */
	bool is_untouchable;        /* this daemon, one of its ancestors, or process 1 */
	bool has_own_container;     /* only its tenant uses the container, and it can be frozen */
	bool is_frozen, is_stopped; /* by this daemon, and still so */
	bool is_terminated;
	uint64_t terminated_ns;
};
enum violation_step violation_next(const struct violation_case *c, uint64_t now_ns);

struct violations_figures {
	uint64_t frozen, stopped, told_to_end, killed, failed;
};
