#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "kube/hami/cards.h"
#include "kube/hami/cordon.h"
#include "kube/hami/scores.h"
#include "kube/util/sanitize.h"
#include "scheduler/inventory/inventory.h"

/* Bounds of plausible figures. One percent of less than MEMORY_LEAST_MIB would round to 0 MiB, which means no limit. */
#define MEMORY_LEAST_MIB 100
#define MEMORY_MOST_MIB (UINT64_C(16) << 20)
#define CORES_MOST_PCT 10000
#define SLOTS_MOST 10000

#define INSTANCE_PREFIX "MIG-"

static void free_cards(struct kube_cards *cards)
{
	cards_free(cards);
}

static int check_figure(const char *what, uint64_t value, uint64_t least, uint64_t most,
			struct error *err)
{
	if (value >= least && value <= most)
		return 0;
	return error_set(err, EINVAL, "%s: %" PRIu64 ": must be %" PRIu64 " to %" PRIu64, what,
			 value, least, most);
}

/* An unhealthy card is never assigned, so only its id is checked. */
static int check_card(const struct kube_card *card, struct error *err)
{
	if (card->id[strcspn(card->id, ",:; \t\r\n")])
		return error_set(err, EINVAL, "id: must not contain spaces, ',', ':' or ';'");
	if (!card->is_healthy)
		return 0;
	int r = check_figure("count", card->count, 1, SLOTS_MOST, err);
	if (r >= 0)
		r = check_figure("devmem", card->memory_mib, MEMORY_LEAST_MIB, MEMORY_MOST_MIB, err);
	if (r >= 0)
		r = check_figure("devcore", card->cores_pct, 1, CORES_MOST_PCT, err);
	return r;
}

static int check_cards(const struct kube_cards *cards, struct error *err)
{
	if (cards->count > PLACE_MAX_CARDS)
		return error_set(err, EINVAL, "%zu GPUs: must be at most %d", cards->count,
				 PLACE_MAX_CARDS);
	for (size_t i = 0; i < cards->count; i++) {
		int r = check_card(&cards->card[i], err);
		for (size_t k = 0; r >= 0 && k < i; k++)
			if (!strcmp(cards->card[i].id, cards->card[k].id))
				r = error_set(err, EINVAL, "is also the id of GPU %zu", k);
		if (r < 0)
			return error_add(err, r, KUBE_NODE_REGISTER ": GPU %zu, %.80s", i,
					 cards->card[i].id);
	}
	return 0;
}

static bool add_card(const struct kube_card *from, const char *cordon, struct inventory *inventory)
{
	unsigned i = inventory->count;
	unsigned cores_pct = from->cores_pct < CORES_MOST_PCT ? from->cores_pct : CORES_MOST_PCT;
	inventory->use[i].mode = intern(inventory->strings,
					*from->mode ? from->mode : CARD_MODE_DEFAULT);
	inventory->card[i] = (struct place_card){
		.uuid = intern(inventory->strings, from->id),
		.type = intern(inventory->strings, from->type),
		.memory_total_bytes = from->memory_mib << MIB_BITS,
		.cores_total_mpct = cores_pct * MPCT,
		.slots_total = from->count,
		.numa_known = true,
		.numa = from->numa,
		.is_instance = !strncmp(from->id, INSTANCE_PREFIX, strlen(INSTANCE_PREFIX)),
		.is_sick = !from->is_healthy,
		.is_cordoned = cordon_has(cordon, from->id),
	};
	inventory->count++;
	return inventory->use[i].mode && inventory->card[i].uuid && inventory->card[i].type;
}

/* With one mode for all cards, checks need not compare the mode of each card. NULL if modes differ. */
static const char *mode_of_all(const struct inventory *inventory)
{
	for (unsigned i = 1; i < inventory->count; i++)
		if (inventory->use[i].mode != inventory->use[0].mode)
			return NULL;
	return inventory->use[0].mode;
}

static size_t find_scores(const struct kube_scores *scores, const char *uuid)
{
	size_t i = 0;
	while (i < scores->count && strcmp(scores->id[i], uuid) != 0)
		i++;
	return i;
}

/* Ignores scores that are malformed or lack a card: cards can be assigned without them. */
static void read_scores(const char *text, struct inventory *inventory)
{
	struct kube_scores scores;
	size_t at[PLACE_MAX_CARDS], n = inventory->count;
	bool is_whole = true;
	if (n < 2 || scores_parse(text, &scores, NULL) < 0)
		return;
	for (size_t i = 0; i < n; i++) {
		at[i] = find_scores(&scores, inventory->card[i].uuid);
		is_whole &= at[i] < scores.count;
	}
	inventory->score = is_whole ? calloc(n * n, sizeof(*inventory->score)) : NULL;
	for (size_t i = 0; inventory->score && i < n; i++)
		for (size_t k = 0; k < n; k++) {
			int score = scores.score[at[i] * scores.count + at[k]];
			inventory->score[i * n + k] = (uint16_t)(score < UINT16_MAX ? score
										    : UINT16_MAX);
		}
	scores_free(&scores);
}

int inventory_read(const struct inventory_source *source, struct string_map *strings,
		   struct inventory *ret, struct error *err)
{
	struct inventory inventory = { .strings = strings, .served_names = source->served_names };
	cleanup(free_cards) struct kube_cards cards = { 0 };
	if (!source->cards)
		return -ENODATA;
	int r = cards_parse(source->cards, &cards, err);
	if (r >= 0)
		r = check_cards(&cards, err);
	if (r < 0)
		return error_sanitize(err, r);
	if (!cards.count)
		return -ENODATA;
	inventory.card = calloc(cards.count, sizeof(*inventory.card));
	inventory.use = calloc(cards.count, sizeof(*inventory.use));
	bool is_whole = inventory.card && inventory.use;
	for (size_t i = 0; is_whole && i < cards.count; i++)
		is_whole = add_card(&cards.card[i], source->cordon, &inventory);
	if (!is_whole) {
		inventory_free(&inventory);
		return error_set_errno(err, ENOMEM, KUBE_NODE_REGISTER);
	}
	inventory.mode = mode_of_all(&inventory);
	if (source->scores)
		read_scores(source->scores, &inventory);
	*ret = inventory;
	return 0;
}
