#include "packing/experiments.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define DAY_S 86400.0
#define LOOK_S 60.0
#define TASKS_MAX 400000u

/* ---- one policy on one cluster ---- */

struct run {
	const struct packing_policy *policy;
	void *data;
	struct packing_histogram histogram;
	struct packing_cluster cluster;
	struct packing_random random;
	double used; /* GPUs */
	unsigned *decision_ns, decisions;
};

static struct run *begin(const struct packing_policy *policy, const struct packing_setting *setting,
			 uint64_t seed)
{
	struct run *run = calloc(1, sizeof(*run));
	if (!run || !(run->decision_ns = calloc(TASKS_MAX, sizeof(*run->decision_ns))))
		abort();
	run->policy = policy;
	run->random.state = seed;
	packing_histogram_make(setting->has_models, setting->has_cpus, &run->histogram);
	packing_cluster_make(setting->scale, setting->has_cpus, &run->cluster);
	run->data = policy->begin(policy, &run->cluster, &run->histogram, seed);
	return run;
}

static int by_value(const void *a, const void *b)
{
	unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;
	return (x > y) - (x < y);
}

static void end(struct run *run, struct packing_result *result)
{
	double sum = 0;
	for (unsigned i = 0; i < run->decisions; i++)
		sum += run->decision_ns[i];
	qsort(run->decision_ns, run->decisions, sizeof(*run->decision_ns), by_value);
	result->nodes = run->cluster.nodes;
	result->cards = run->cluster.cards;
	if (run->decisions) {
		result->decision_us = sum / run->decisions / 1e3;
		result->decision_p99_us = run->decision_ns[(size_t)((run->decisions - 1) * 0.99)] /
					  1e3;
	}
	run->policy->end(run->data);
	packing_cluster_free(&run->cluster);
	free(run->decision_ns);
	free(run);
}

static double cards_of(const struct packing_task *task)
{
	return (double)task->cards * task->milli / PACKING_WHOLE_MILLI;
}

static bool place(struct run *run, const struct packing_task *task, unsigned id,
		  struct packing_place *ret)
{
	uint64_t begun_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
	bool is_placed = run->policy->place(run->data, &run->cluster, task, id, ret);
	if (run->decisions < TASKS_MAX)
		run->decision_ns[run->decisions++] =
			(unsigned)(clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - begun_ns);
	if (!is_placed)
		return false;
	packing_take(&run->cluster, task, ret);
	run->used += cards_of(task);
	return true;
}

static void ended(struct run *run, unsigned id)
{
	if (run->policy->ended)
		run->policy->ended(run->data, id);
}

/* ---- a cluster that fills ---- */

struct packing_result packing_fill(const struct packing_policy *policy,
				   const struct packing_setting *setting, double demand,
				   uint64_t seed)
{
	struct packing_result r = { 0 };
	struct run *run = begin(policy, setting, seed);
	double all = run->cluster.cards, asked = 0;
	while (asked < demand * all) {
		const struct packing_task *task = packing_draw(&run->histogram, &run->random);
		struct packing_place at;
		bool is_placed = place(run, task, r.tasks, &at);
		if (!is_placed) {
			ended(run, r.tasks);
			if (!r.failed++)
				r.at_first = run->used / all;
		}
		r.tasks++;
		if (asked < all)
			r.at_demand = run->used / all;
		asked += cards_of(task);
		r.of[task->class].asked += cards_of(task);
		r.of[task->class].got += is_placed ? cards_of(task) : 0;
	}
	r.packed = run->used / all;
	end(run, &r);
	return r;
}

/* ---- a day ---- */

struct arrival {
	const struct packing_task *task;
	double at_s, lasts_s, ends_s; /* ends_s 0: it was not placed yet */
	struct packing_place place;
};

/* By the time at which they end: a heap of tasks' numbers. */
struct ends {
	unsigned *id, count;
};

static void swap(unsigned *a, unsigned *b)
{
	unsigned other = *a;
	*a = *b;
	*b = other;
}

static void ends_add(struct ends *ends, const struct arrival *task, unsigned id)
{
	unsigned at = ends->count++;
	ends->id[at] = id;
	for (; at && task[ends->id[at]].ends_s < task[ends->id[(at - 1) / 2]].ends_s;
	     at = (at - 1) / 2)
		swap(&ends->id[at], &ends->id[(at - 1) / 2]);
}

static unsigned ends_take(struct ends *ends, const struct arrival *task)
{
	unsigned first = ends->id[0], at = 0;
	ends->id[0] = ends->id[--ends->count];
	for (;;) {
		unsigned least = at;
		for (unsigned c = 2 * at + 1; c <= 2 * at + 2 && c < ends->count; c++)
			if (task[ends->id[c]].ends_s < task[ends->id[least]].ends_s)
				least = c;
		if (least == at)
			return first;
		swap(&ends->id[at], &ends->id[least]);
		at = least;
	}
}

struct day {
	struct run *run;
	struct arrival *task;
	unsigned tasks, waiting, *wait; /* in the order in which they came */
	struct ends ends;
	double now_s, used_s; /* GPU seconds of the second day */
};

static void advance(struct day *day, double to_s)
{
	double from = fmax(day->now_s, DAY_S);
	if (to_s > from)
		day->used_s += day->run->used * (to_s - from);
	day->now_s = to_s;
}

static bool try_task(struct day *day, unsigned id)
{
	struct arrival *task = &day->task[id];
	if (!place(day->run, task->task, id, &task->place))
		return false;
	task->ends_s = day->now_s + task->lasts_s;
	ends_add(&day->ends, day->task, id);
	return true;
}

static void end_until(struct day *day, double until_s)
{
	while (day->ends.count && day->task[day->ends.id[0]].ends_s <= until_s) {
		unsigned id = ends_take(&day->ends, day->task);
		struct arrival *task = &day->task[id];
		advance(day, task->ends_s);
		packing_give_back(&day->run->cluster, task->task, &task->place);
		day->run->used -= cards_of(task->task);
		ended(day->run, id);
	}
	advance(day, until_s);
}

/* Where one of a kind finds no room, the next of that kind would not either: room is only taken meanwhile. */
static void try_waiting(struct day *day)
{
	static bool has_failed[1024];
	unsigned left = 0;
	memset(has_failed, 0, sizeof(has_failed));
	for (unsigned i = 0; i < day->waiting; i++) {
		unsigned id = day->wait[i];
		bool *failed = &has_failed[packing_kind_of(&day->run->histogram, day->task[id].task)];
		if (*failed || !try_task(day, id)) {
			*failed = true;
			day->wait[left++] = id;
		}
	}
	day->waiting = left;
}

static void draw(struct day *day, double load)
{
	double wanted = 0, at_s = 0;
	for (size_t k = 0; k < day->run->histogram.count; k++) {
		const struct packing_kind *kind = &day->run->histogram.kind[k];
		wanted += kind->part * cards_of(&kind->task) * packing_mean_s(kind->task.class);
	}
	double apart_s = wanted / (load * day->run->cluster.cards);
	for (; day->tasks < TASKS_MAX; day->tasks++) {
		at_s -= log(1 - packing_random_part(&day->run->random)) * apart_s;
		if (at_s >= 2 * DAY_S)
			return;
		const struct packing_task *task = packing_draw(&day->run->histogram,
							       &day->run->random);
		day->task[day->tasks] = (struct arrival){
			.task = task,
			.at_s = at_s,
			.lasts_s = packing_draw_s(task->class, &day->run->random),
		};
	}
}

static void sum_up(const struct day *day, struct packing_result *r)
{
	unsigned counted = 0;
	for (unsigned i = 0; i < day->tasks; i++) {
		const struct arrival *task = &day->task[i];
		double until = task->ends_s > 0 ? task->ends_s - task->lasts_s : 2 * DAY_S;
		struct packing_part *of = &r->of[task->task->class];
		if (task->at_s < DAY_S)
			continue;
		counted++;
		r->wait_s += until - task->at_s;
		of->asked += cards_of(task->task) * task->lasts_s / 3600;
		of->got += task->ends_s > 0 ? cards_of(task->task) * task->lasts_s / 3600 : 0;
	}
	r->tasks = counted;
	r->wait_s /= counted ? counted : 1;
	r->failed = day->waiting;
	r->packed = day->used_s / DAY_S / day->run->cluster.cards;
}

struct packing_result packing_day(const struct packing_policy *policy,
				  const struct packing_setting *setting, double load, uint64_t seed)
{
	struct packing_result r = { 0 };
	struct day day = { .run = begin(policy, setting, seed),
			   .task = calloc(TASKS_MAX, sizeof(*day.task)),
			   .wait = calloc(TASKS_MAX, sizeof(*day.wait)),
			   .ends = { .id = calloc(TASKS_MAX, sizeof(*day.ends.id)) } };
	if (!day.task || !day.wait || !day.ends.id)
		abort();
	draw(&day, load);
	unsigned next = 0;
	for (double look_s = LOOK_S; look_s <= 2 * DAY_S; look_s += LOOK_S) {
		for (; next < day.tasks && day.task[next].at_s <= look_s; next++) {
			end_until(&day, day.task[next].at_s);
			if (!try_task(&day, next))
				day.wait[day.waiting++] = next;
		}
		end_until(&day, look_s);
		try_waiting(&day);
	}
	sum_up(&day, &r);
	end(day.run, &r);
	free(day.task);
	free(day.wait);
	free(day.ends.id);
	return r;
}
