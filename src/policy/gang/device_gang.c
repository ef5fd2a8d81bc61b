#include "policy/gang/device_gang.h"

#include <errno.h>
#include <stdlib.h>

#include "base/min.h"

enum phase { PHASE_WAITING, PHASE_GATHERING, PHASE_RUNNING, PHASE_ENDING };

struct part {
	struct gang_report last_report;
	struct gang_command command;
};

struct gang {
	enum phase phase;
	/* devices that have reported the gang, a bit each; includes the sets below */
	uint64_t devices;
	uint64_t present, wanting, owned;
	/* all wanted devices reported is_due, and each idle rank has been idle for at least GANG_COME_NS */
	bool is_due;
	bool is_stuck;
	double behind;
	uint64_t at_ns, slip_until_ns;
	uint64_t turns;
	struct part part[GANG_MAX_DEVICES];
};

struct gang_board {
	struct gang *gang[GANG_MAX];
	int count; /* 1 + the highest gang number used so far */
};

#define BIT(device) (UINT64_C(1) << (device))
/* clang-format off */
#define FOR_EACH(device, set) \
	for (uint64_t left_ = (set), device; \
	     left_ && (device = (uint64_t)__builtin_ctzll(left_), true); left_ &= left_ - 1)
/* clang-format on */

struct gang_board *gang_board_new(void)
{
	return calloc(1, sizeof(struct gang_board));
}

struct gang_board *gang_board_free(struct gang_board *board)
{
	for (int i = 0; board && i < board->count; i++)
		free(board->gang[i]);
	free(board);
	return NULL;
}

static struct gang *find(const struct gang_board *board, int gang)
{
	return gang >= 0 && gang < board->count ? board->gang[gang] : NULL;
}

int gang_add(struct gang_board *board)
{
	int index = 0;

	while (index < GANG_MAX && board->gang[index])
		index++;
	if (index == GANG_MAX)
		return -ENOSPC;
	board->gang[index] = calloc(1, sizeof(struct gang));
	if (!board->gang[index])
		return -ENOMEM;
	if (index >= board->count)
		board->count = index + 1;
	return index;
}

void gang_remove(struct gang_board *board, int gang)
{
	if (!find(board, gang))
		return;
	free(board->gang[gang]);
	board->gang[gang] = NULL;
}

void gang_set_report(struct gang_board *board, int gang, unsigned device,
		     const struct gang_report *report)
{
	struct gang *g = find(board, gang);

	if (!g || device >= GANG_MAX_DEVICES)
		return;
	g->devices |= BIT(device);
	g->part[device].last_report = *report;
}

struct gang_command gang_command(const struct gang_board *board, int gang, unsigned device)
{
	const struct gang *g = find(board, gang);

	if (!g || device >= GANG_MAX_DEVICES)
		return (struct gang_command){ .order = GANG_NONE };
	return g->part[device].command;
}

uint64_t gang_turns(const struct gang_board *board, int gang)
{
	const struct gang *g = find(board, gang);

	return g ? g->turns : 0;
}

static bool is_several(uint64_t set)
{
	return (set & (set - 1)) != 0;
}

static void read_reports(struct gang *g)
{
	bool is_due = true, waits = false, is_stuck = false;

	g->present = g->wanting = 0;
	g->behind = 0;
	FOR_EACH(d, g->devices) {
		const struct gang_report *r = &g->part[d].last_report;

		if (!r->is_present)
			continue;
		g->present |= BIT(d);
		waits |= r->waits;
		is_stuck |= r->is_stuck;
		if (!r->wants) {
			/* If the turn began now, other ranks would hold leases while they wait for this one. */
			is_due &= r->idle_ns >= GANG_COME_NS;
			continue;
		}
		if (!g->wanting || r->behind > g->behind)
			g->behind = r->behind;
		g->wanting |= BIT(d);
		is_due &= r->is_due;
	}
	g->is_due = g->wanting && is_due;
	g->is_stuck = is_stuck && waits;
}

static uint64_t owned_by_others(const struct gang_board *board, const struct gang *except)
{
	uint64_t owned = 0;

	for (int i = 0; i < board->count; i++)
		if (board->gang[i] && board->gang[i] != except)
			owned |= board->gang[i]->owned;
	return owned;
}

static bool is_behind(const struct gang *g, int index, const struct gang *other, int other_index)
{
	if (g->behind > other->behind)
		return true;
	return !(g->behind < other->behind) && index < other_index;
}

/* Whether another due gang wants one of the devices that this gang wants, and is further behind. */
static bool must_wait(const struct gang_board *board, int index)
{
	const struct gang *g = board->gang[index];

	for (int i = 0; i < board->count; i++) {
		const struct gang *other = board->gang[i];

		if (other && other != g && other->phase == PHASE_WAITING && other->is_due &&
		    (other->wanting & g->wanting) && is_behind(other, i, g, index))
			return true;
	}
	return false;
}

static void wait_for_turn(struct gang *g)
{
	g->phase = PHASE_WAITING;
	g->owned = 0;
}

static void run(struct gang *g, uint64_t devices)
{
	g->phase = PHASE_RUNNING;
	g->owned = devices;
	g->turns += is_several(devices);
}

static bool holds(const struct gang_report *r)
{
	return r->holds;
}

static bool drains(const struct gang_report *r)
{
	return r->drains;
}

static bool is_gone(const struct gang_report *r)
{
	return !r->holds && !r->drains;
}

static uint64_t devices_where(const struct gang *g, bool (*says)(const struct gang_report *))
{
	uint64_t set = 0;

	FOR_EACH(d, g->present)
		if (says(&g->part[d].last_report))
			set |= BIT(d);
	return set;
}

/* The predicted end of the gang's last in-flight work, at most GANG_GATHER_MAX_NS from now. */
static uint64_t ends_at(const struct gang *g, uint64_t now_ns)
{
	uint64_t longest_ns = 0;

	FOR_EACH(d, g->owned)
		if (!is_gone(&g->part[d].last_report))
			longest_ns = max_u64(longest_ns, g->part[d].last_report.drain_ns);
	return now_ns + min_u64(longest_ns, GANG_GATHER_MAX_NS);
}

static void end_turn(struct gang *g, uint64_t now_ns)
{
	g->phase = PHASE_ENDING;
	g->slip_until_ns = 0;
	g->at_ns = ends_at(g, now_ns);
}

/* If work will end sooner than predicted, so must the turn: a rank without work would begin its next step. */
static void advance_end(struct gang *g, uint64_t now_ns)
{
	uint64_t at_ns = ends_at(g, now_ns);

	if (at_ns + GANG_SOONER_NS <= g->at_ns)
		g->at_ns = at_ns;
}

/* Whether work on devices outside `except` should have ended by now, and slips (device_gang.h) may still help. */
static bool is_late(const struct gang *g, uint64_t except, uint64_t now_ns)
{
	if (now_ns >= g->at_ns + GANG_SLIP_MAX_NS)
		return false;
	FOR_EACH(d, g->present & ~except)
		if (g->part[d].last_report.is_late)
			return true;
	return false;
}

static void decide_waiting(struct gang_board *board, int index, uint64_t now_ns)
{
	struct gang *g = board->gang[index];
	uint64_t taken = owned_by_others(board, g), held = devices_where(g, holds);
	uint64_t drained = devices_where(g, drains);
	uint64_t longest_ns = 0;

	/* A lease from before the tenant became a gang, or because of need (arbiter.h), starts the gang's turn. */
	if (held && !(held & taken)) {
		run(g, held);
		return;
	}
	if (!held && drained && !(drained & taken)) {
		g->owned = drained;
		end_turn(g, now_ns);
		return;
	}
	if (held || !g->is_due || (g->wanting & taken) || must_wait(board, index))
		return;
	FOR_EACH(d, g->wanting)
		longest_ns = max_u64(longest_ns, g->part[d].last_report.free_in_ns);
	g->phase = PHASE_GATHERING;
	g->owned = g->wanting;
	g->at_ns = now_ns + min_u64(longest_ns, GANG_GATHER_MAX_NS);
}

static void decide_gathering(struct gang *g)
{
	g->owned &= g->wanting;
	if (!g->owned) {
		wait_for_turn(g);
		return;
	}
	FOR_EACH(d, g->owned) {
		const struct gang_report *r = &g->part[d].last_report;

		/* Trust no report from before GANG_GATHER: another tenant may have got the device since then. */
		if (r->order != GANG_GATHER || !r->is_vacant)
			return;
	}
	run(g, g->owned);
}

/* Whether another due gang wants a device where this gang has held the lease for a quantum. */
static bool is_relieved(const struct gang_board *board, const struct gang *g)
{
	uint64_t held = 0;

	FOR_EACH(d, g->owned)
		if (g->part[d].last_report.holds && g->part[d].last_report.may_yield)
			held |= BIT(d);
	for (int i = 0; i < board->count; i++) {
		const struct gang *other = board->gang[i];

		if (other && other != g && other->phase == PHASE_WAITING && other->is_due &&
		    (other->wanting & held))
			return true;
	}
	return false;
}

static void decide_running(struct gang_board *board, struct gang *g, uint64_t now_ns)
{
	bool is_over = is_relieved(board, g), is_left = true, has_idle_rank = false;

	g->owned |= g->wanting & ~owned_by_others(board, g);
	g->owned &= g->present;
	FOR_EACH(d, g->owned) {
		const struct gang_report *r = &g->part[d].last_report;

		is_over |= r->holds && r->is_over;
		has_idle_rank |= r->holds && r->is_idle;
		if (r->order == GANG_GO && is_gone(r) && !r->wants)
			g->owned &= ~BIT(d);
		else
			is_left &= r->order == GANG_GO && is_gone(r);
	}
	/* All ranks are idle. If their leases ended one by one, the others would spin while they wait. */
	is_over |= has_idle_rank && !(g->owned & g->wanting);
	if (is_left)
		wait_for_turn(g);
	else if (is_over)
		end_turn(g, now_ns);
}

static void decide_ending(const struct gang_board *board, struct gang *g, uint64_t now_ns)
{
	advance_end(g, now_ns);
	/* The leases may be from before the tenant was a gang. Then `owned` lacks devices that other ranks need: add them. */
	if (is_late(g, 0, now_ns))
		g->owned |= g->wanting & ~owned_by_others(board, g);
	if (is_late(g, 0, now_ns) && now_ns >= g->at_ns + GANG_SLIP_ALONE_NS)
		g->slip_until_ns = now_ns + GANG_SLIP_TOGETHER_NS;
	FOR_EACH(d, g->owned & g->present) {
		const struct gang_report *r = &g->part[d].last_report;

		if (!is_gone(r) || r->order != GANG_CLOSE)
			return;
	}
	wait_for_turn(g);
}

/* Another rank's work does not end, and may be waiting for the rank on `device`. */
static bool may_slip(const struct gang *g, uint64_t device, uint64_t now_ns)
{
	const struct gang_report *r = &g->part[device].last_report;
	bool slips = g->part[device].command.is_slip && (r->holds || r->order != GANG_GO);

	if (now_ns < g->slip_until_ns)
		return true;
	return !r->drains && (r->waits || slips) && is_late(g, BIT(device), now_ns);
}

static uint64_t idle_elsewhere_ns(const struct gang *g, uint64_t device)
{
	uint64_t least_ns = UINT64_MAX;

	FOR_EACH(d, g->owned & ~BIT(device)) {
		const struct gang_report *r = &g->part[d].last_report;

		if (r->holds)
			least_ns = min_u64(least_ns, r->wants ? 0 : r->idle_ns);
	}
	return least_ns;
}

static struct gang_command choose_command(const struct gang *g, uint64_t device, uint64_t now_ns)
{
	struct gang_command command = { .order = GANG_WAIT,
					.is_stuck = g->is_stuck,
					.idle_elsewhere_ns = UINT64_MAX };

	if (!is_several(g->present) || !(g->present & BIT(device)))
		return (struct gang_command){ .order = GANG_NONE };
	if (g->phase == PHASE_WAITING) {
		/* Another gang comes first on a device where this waiting gang still has a lease, so close that lease. */
		if (g->part[device].last_report.holds)
			command.order = GANG_CLOSE;
		return command;
	}
	if (!(g->owned & BIT(device)))
		return command;
	switch (g->phase) {
	case PHASE_GATHERING: command.order = GANG_GATHER; break;
	case PHASE_RUNNING:
		command.order = GANG_GO;
		command.idle_elsewhere_ns = idle_elsewhere_ns(g, device);
		break;
	case PHASE_ENDING:
		command.is_slip = may_slip(g, device, now_ns);
		command.order = command.is_slip ? GANG_GO : GANG_CLOSE;
		break;
	case PHASE_WAITING: break;
	}
	if (command.order == GANG_GATHER || command.order == GANG_CLOSE)
		command.at_ns = g->at_ns;
	return command;
}

static void decide_one(struct gang_board *board, int index, uint64_t now_ns)
{
	struct gang *g = board->gang[index];

	if (!is_several(g->present)) {
		wait_for_turn(g);
		return;
	}
	switch (g->phase) {
	case PHASE_WAITING: decide_waiting(board, index, now_ns); break;
	case PHASE_GATHERING: decide_gathering(g); break;
	case PHASE_RUNNING: decide_running(board, g, now_ns); break;
	case PHASE_ENDING: decide_ending(board, g, now_ns); break;
	}
}

uint64_t gang_decide(struct gang_board *board, uint64_t now_ns)
{
	uint64_t changed = 0;

	for (int i = 0; i < board->count; i++)
		if (board->gang[i])
			read_reports(board->gang[i]);
	/* Gangs that own devices come first, so that a waiting gang can use the devices that they give back now. */
	for (int waiting = 0; waiting <= 1; waiting++)
		for (int i = 0; i < board->count; i++)
			if (board->gang[i] &&
			    (board->gang[i]->phase == PHASE_WAITING) == (bool)waiting)
				decide_one(board, i, now_ns);
	for (int i = 0; i < board->count; i++) {
		struct gang *g = board->gang[i];

		if (!g)
			continue;
		FOR_EACH(d, g->devices) {
			struct gang_command command = choose_command(g, d, now_ns);

			if (command.order != g->part[d].command.order ||
			    command.at_ns != g->part[d].command.at_ns)
				changed |= BIT(d);
			g->part[d].command = command;
		}
	}
	return changed;
}
