#include "day.h"

#include <math.h>
#include <stdlib.h>

/* Many small ones for inference that ask for more of one than of the other, fewer and longer trainings. */
const struct day_kind day_kinds[] = {
	{ 0, 10, 10, 14, 240 },  { 0, 10, 30, 12, 240 }, { 0, 20, 10, 10, 180 },
	{ 0, 25, 25, 12, 180 },  { 0, 30, 50, 8, 120 },  { 0, 50, 20, 8, 120 },
	{ 0, 50, 50, 8, 120 },   { 0, 70, 40, 4, 90 },   { 1, 100, 100, 12, 150 },
	{ 2, 100, 100, 7, 120 }, { 4, 100, 100, 4, 90 }, { 8, 100, 100, 1, 60 },
};
const unsigned day_kind_count = sizeof(day_kinds) / sizeof(day_kinds[0]);

static unsigned weights(void)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < day_kind_count; i++)
		sum += day_kinds[i].weight;
	return sum;
}

static const struct day_kind *draw_kind(uint64_t *random)
{
	uint64_t at = random_between(random, 1, weights());
	unsigned i = 0;

	while (at > day_kinds[i].weight)
		at -= day_kinds[i++].weight;
	return &day_kinds[i];
}

static double draw_time(uint64_t *random, double mean)
{
	return -mean * log((double)random_between(random, 1, 1000000) / 1000000.0);
}

/* How many cards a container of any kind keeps busy, on average, times its minutes. */
static double work_of_one(void)
{
	double sum = 0;

	for (unsigned i = 0; i < day_kind_count; i++) {
		const struct day_kind *k = &day_kinds[i];
		sum += k->weight * (k->cards ? k->cards : k->cores_pct / 100.0) * k->stay_minutes;
	}
	return sum / weights();
}

void day_draw(struct day_trace *trace, const struct place_node *node, unsigned load_pct,
	      uint64_t seed)
{
	double pause = work_of_one() / (node->card_count * (load_pct / 100.0)), now = 0;

	trace->count = 0;
	while (now < DAY_MINUTES) {
		struct day_task *task = &trace->task[trace->count++];
		assert_true(trace->count <= DAY_MOST_TASKS);
		task->kind = draw_kind(&seed);
		task->comes = now;
		task->goes = now + draw_time(&seed, task->kind->stay_minutes);
		now += draw_time(&seed, pause);
	}
}

struct place_request day_request(const struct place_node *node, const struct day_kind *kind)
{
	struct place_request request = { .count = kind->cards ? kind->cards : 1,
					 .memory = kind->cards ? PLACE_MEMORY_ALL
							       : PLACE_MEMORY_BYTES,
					 .cores_mpct = kind->cores_pct * 1000 };

	/* In bytes of the node's first card: a request is for these bytes on any card. */
	request.memory_bytes = node->card[0].memory_total_bytes / 100 * kind->memory_pct;
	return request;
}

static bool is_free(const struct place_card *card)
{
	return card->slots_used == 0;
}

static double unusable_for(const struct place_node *node, const struct day_kind *kind)
{
	struct place_request request = day_request(node, kind);
	double unusable = 0, all = 0;
	unsigned free_cards = 0;

	for (unsigned i = 0; i < node->card_count; i++) {
		const struct place_card *card = &node->card[i];
		double left = place_cores_left(card);
		bool serves = kind->cards ? is_free(card)
					  : place_cores_left(card) >= request.cores_mpct &&
						    place_memory_left(card) >= request.memory_bytes;
		free_cards += is_free(card);
		all += left;
		if (!serves)
			unusable += left;
	}
	return kind->cards > free_cards ? all : unusable;
}

double day_unusable_cards(const struct place_node *node)
{
	double sum = 0;

	for (unsigned k = 0; k < day_kind_count; k++)
		sum += day_kinds[k].weight * unusable_for(node, &day_kinds[k]);
	return sum / weights() / PLACE_CORES_WHOLE_MPCT;
}

static double left_cards(const struct place_node *node)
{
	double all = 0;

	for (unsigned i = 0; i < node->card_count; i++)
		all += place_cores_left(&node->card[i]);
	return all / PLACE_CORES_WHOLE_MPCT;
}

static double links_of(const struct place_node *node, const struct place_choice *choice)
{
	double sum = 0;
	unsigned pairs = 0;

	for (unsigned i = 0; i < choice->count; i++)
		for (unsigned j = i + 1; j < choice->count; j++, pairs++)
			sum += place_link_score(node->link[choice->card[i]][choice->card[j]]);
	return sum / pairs;
}

static void place_take(struct place_node *node, const struct place_choice *choice)
{
	for (unsigned i = 0; i < choice->count; i++) {
		struct place_card *card = &node->card[choice->card[i]];
		card->slots_used++;
		card->memory_used_bytes += choice->need[i].memory_bytes;
		card->cores_used_mpct += choice->need[i].cores_mpct;
	}
}

static void place_give_back(struct place_node *node, const struct place_choice *choice)
{
	for (unsigned i = 0; i < choice->count; i++) {
		struct place_card *card = &node->card[choice->card[i]];
		card->slots_used--;
		card->memory_used_bytes -= choice->need[i].memory_bytes;
		card->cores_used_mpct -= choice->need[i].cores_mpct;
	}
}

struct day_result day_run(const struct day_trace *trace, struct place_node node,
			  day_chooser *chooser)
{
	struct place_choice *choice = calloc(trace->count, sizeof(*choice));
	struct day_result result = { 0 };
	unsigned next = 0, sets = 0;

	assert_non_null(choice);
	for (unsigned minute = 0; minute < DAY_MINUTES; minute++) {
		for (unsigned i = 0; i < next; i++)
			if (choice[i].count && trace->task[i].goes <= minute) {
				place_give_back(&node, &choice[i]);
				choice[i].count = 0;
			}
		for (; next < trace->count && trace->task[next].comes <= minute; next++) {
			const struct day_task *task = &trace->task[next];
			if (!chooser(&node, task->kind, &choice[next])) {
				result.turned_away++;
				choice[next].count = 0;
				continue;
			}
			place_take(&node, &choice[next]);
			result.placed++;
			result.placed_card_minutes += (task->goes - task->comes) *
						      (task->kind->cards
							       ? task->kind->cards
							       : task->kind->cores_pct / 100.0);
			if (choice[next].count > 1) {
				result.links += links_of(&node, &choice[next]);
				sets++;
			}
		}
		result.unusable_cards += day_unusable_cards(&node) / DAY_MINUTES;
		result.left_cards += left_cards(&node) / DAY_MINUTES;
	}
	if (sets)
		result.links /= sets;
	free(choice);
	return result;
}
