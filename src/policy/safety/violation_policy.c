#include "policy/safety/violation_policy.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

static const char *const reason_names[VIOLATION_REASONS] = {
	[VIOLATION_UNREGISTERED] = "unregistered",
	[VIOLATION_OVER_LEDGER] = "over_ledger",
	[VIOLATION_OVER_QUOTA] = "over_quota",
	[VIOLATION_OVER_TIME] = "over_time",
};
static const char *const names[] = {
	[ON_VIOLATION_REPORT] = "report",
	[ON_VIOLATION_FREEZE] = "freeze",
	[ON_VIOLATION_END] = "end",
};

const char *violation_reason_name(enum violation_reason reason)
{
	return reason_names[reason];
}

const char *on_violation_name(enum on_violation what)
{
	return names[what];
}

int on_violation_parse(const char *text, enum on_violation *ret)
{
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(names[i], text)) {
			*ret = (enum on_violation)i;
			return 0;
		}
	return -EINVAL;
}

enum on_violation on_violation_stricter(enum on_violation a, enum on_violation b)
{
	return a > b ? a : b;
}

const struct tenant *violation_owner(const struct violation_signs *s, const char **ret_how)
{
	const struct {
		const struct tenant *owner;
		const char *how;
	} signs[] = {
		{ s->by_cgroup, "in the cgroup of the tenant's command" },
		{ s->by_descent, "started by a process of the tenant" },
		{ s->by_mount, "the tenant's socket is mounted in its file system" },
		{ s->by_container, "in a container of the tenant" },
		{ s->by_environment, "its environment names the tenant's socket" },
	};
	for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++)
		if (signs[i].owner) {
			*ret_how = signs[i].how;
			return signs[i].owner;
		}
	return NULL;
}

bool violation_is_suspected(const struct violation_track *track, uint64_t now_ns,
			    uint64_t interval_ns)
{
	uint64_t memory_ns = VIOLATION_MEMORY_INTERVALS * interval_ns;

	if (memory_ns < VIOLATION_MEMORY_LEAST_NS)
		memory_ns = VIOLATION_MEMORY_LEAST_NS;
	return track->censuses && now_ns - track->last_ns <= memory_ns;
}

bool violation_confirm(struct violation_track *track, uint64_t now_ns, uint64_t interval_ns)
{
	if (!violation_is_suspected(track, now_ns, interval_ns))
		*track = (struct violation_track){ .since_ns = now_ns };
	if (!track->censuses || track->last_ns != now_ns)
		track->censuses++;
	track->last_ns = now_ns;
	return track->censuses >= VIOLATION_CENSUSES &&
	       now_ns - track->since_ns >= VIOLATION_INTERVALS * interval_ns;
}

enum violation_step violation_next(const struct violation_case *c, uint64_t now_ns)
{
	if (c->is_pardoned || c->is_untouchable)
		return VIOLATION_LEAVE;
	switch (c->wanted) {
	case ON_VIOLATION_REPORT: return VIOLATION_LEAVE;
	case ON_VIOLATION_FREEZE:
		if (c->is_frozen || c->is_stopped)
			return VIOLATION_LEAVE;
		return c->has_own_container ? VIOLATION_FREEZE : VIOLATION_STOP;
	case ON_VIOLATION_END:
		if (!c->is_terminated)
			return VIOLATION_TERM;
		return now_ns - c->terminated_ns >= VIOLATION_END_NS ? VIOLATION_KILL
								     : VIOLATION_LEAVE;
	}
	return VIOLATION_LEAVE;
}
