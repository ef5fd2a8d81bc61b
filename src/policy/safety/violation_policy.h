/*
 * Decides which processes bypass the library, and the response to them, from plain data.
 *
 * Each GPU process of a tenant must register with the daemon. An offender is: an unregistered process that holds a card's
 * memory and by some sign belongs to a tenant; a process that holds more than its ledger, the memory that its library counts;
 * the largest process of a tenant above its quota; or the busiest process of a tenant that uses more GPU time than it is
 * charged for (time_policy.h). One census (list of GPU processes) proves nothing.
 *
 * Censuses that show an unregistered process are counted for its tenant, not for the process. Otherwise processes could follow
 * each other, each too short to be confirmed. A stopped process counts too: a process registers before it has a context, so a
 * process that holds memory and is not registered has passed the moment to do so.
 *
 * No clock, no I/O, no static data. Only violation_confirm() changes an argument (`track`).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define VIOLATION_CENSUSES 3 /* number of censuses that must show the violation */
/* A violation must also last for this many census intervals, because some censuses come early. */
#define VIOLATION_INTERVALS 2
/* A tenant is suspected until this many census intervals have passed without an unregistered process. */
#define VIOLATION_MEMORY_INTERVALS 60
#define VIOLATION_MEMORY_LEAST_NS \
	UINT64_C(60000000000) /* because censuses may be rarer than the setting says */
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

/* The censuses that showed unregistered processes of a tenant. All zero: none has. */
struct violation_track {
	unsigned censuses;
	uint64_t since_ns, last_ns; /* the first and the last of these censuses */
};
/*
 * Call for each unregistered process of the tenant that a census shows. now_ns is the census's time, the same for all its
 * processes; interval_ns is the setting census_interval. Leave out processes whose memory is moved by a checkpoint, and all
 * censuses before the tenants' processes have found a restarted daemon. Returns true if the process is an offender.
 */
bool violation_confirm(struct violation_track *track, uint64_t now_ns, uint64_t interval_ns);
/*
 * Returns true if a census has shown an unregistered process of the tenant within the last VIOLATION_MEMORY_INTERVALS census
 * intervals, or within VIOLATION_MEMORY_LEAST_NS if that is longer.
 */
bool violation_is_suspected(const struct violation_track *track, uint64_t now_ns,
			    uint64_t interval_ns);

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
