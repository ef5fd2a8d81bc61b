#include "policy/space/space_trial.h"

struct space_trials space_trials_new(uint64_t now_ns)
{
	return (struct space_trials){ .whose = SPACE_TRIAL_NOBODY, .since = now_ns };
}

static void add_budget(struct space_trials *t, double ns)
{
	t->budget_ns += ns;
	if (t->budget_ns > (double)SPACE_TRIAL_SAVED_NS)
		t->budget_ns = (double)SPACE_TRIAL_SAVED_NS;
}

void space_trials_came(struct space_trials *t)
{
	add_budget(t, (double)SPACE_TRIAL_FIRST_NS);
}

static void begin(struct space_trials *t, int who, uint64_t now_ns)
{
	t->whose = who;
	t->since = now_ns;
}

static void end(struct space_trials *t, uint64_t now_ns)
{
	t->whose = SPACE_TRIAL_NOBODY;
	t->runs = false;
	t->since = now_ns;
}

/*
 * Of those that ask, who was tried for the least time: who is new comes first, and who went away in the middle of a trial, again. SPACE_TRIAL_NOBODY
 * where none asks.
 */
static int next_of(const struct space_trial_seen *seen, size_t count)
{
	const struct space_trial_seen *next = NULL;

	for (size_t i = 0; i < count; i++)
		if (seen[i].may && seen[i].asks && (!next || seen[i].tried_ns < next->tried_ns))
			next = &seen[i];
	return next ? next->who : SPACE_TRIAL_NOBODY;
}

/* Whether somebody came at `since` or later. */
static bool any_came(const struct space_trial_seen *seen, size_t count, uint64_t since)
{
	for (size_t i = 0; i < count; i++)
		if (seen[i].came_at >= since)
			return true;
	return false;
}

/* The one that there is runs from now on, goes on or ends. */
static void go_on(struct space_trials *t, const struct space_trial_seen *seen, size_t count,
		  uint64_t now_ns)
{
	bool others_work = false, may = false;
	uint64_t most_ns = t->runs ? SPACE_TRIAL_MOST_NS : SPACE_TRIAL_WAIT_NS;

	for (size_t i = 0; i < count; i++) {
		others_work |= seen[i].who != t->whose && seen[i].works;
		if (seen[i].who != t->whose)
			continue;
		may = seen[i].may;
		if (t->runs && seen[i].is_clear)
			most_ns = SPACE_TRIAL_NS;
	}
	/* Who is not held by his grant, whatever he says, would make it look slow. */
	may = may && !(t->runs && others_work) && !any_came(seen, count, t->since);
	if (may && !t->runs && !others_work) {
		t->runs = true;
		t->since = now_ns;
	} else if (!may || now_ns - t->since >= most_ns) {
		end(t, now_ns);
	}
}

void space_trials_step(struct space_trials *t, const struct space_trial_seen *seen, size_t count,
		       uint64_t now_ns, uint64_t dt_ns)
{
	uint64_t since_ns = now_ns - t->since;
	int next;

	add_budget(t, SPACE_TRIAL_BUDGET * (double)dt_ns);
	if (t->whose != SPACE_TRIAL_NOBODY) {
		t->budget_ns -= (double)dt_ns;
		t->spent_ns += dt_ns;
		go_on(t, seen, count, now_ns);
		return;
	}
	if (since_ns < SPACE_TRIAL_EVERY_NS ||
	    t->budget_ns < (double)(SPACE_TRIAL_MOST_NS + SPACE_TRIAL_WAIT_NS) ||
	    any_came(seen, count, now_ns > SPACE_TRIAL_COMES_NS ? now_ns - SPACE_TRIAL_COMES_NS : 0))
		return;
	next = next_of(seen, count);
	if (next != SPACE_TRIAL_NOBODY)
		begin(t, next, now_ns);
}
