#include "kube/own/node_cards.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "kube/util/sanitize.h"

#define CARDS_MAX 1024
#define PCT_MOST 10000 /* a larger percentage is invalid */

static int read_number(const json_t *object, const char *key, int64_t least, int64_t most,
		       int64_t *ret, struct error *err)
{
	const json_t *value = json_object_get(object, key);
	json_int_t number = json_integer_value(value);
	if (!json_is_integer(value) || number < least || number > most)
		return error_set(err, EINVAL, "%s: must be a whole number from %lld to %lld", key,
				 (long long)least, (long long)most);
	*ret = number;
	return 0;
}

static int load(const char *text, json_t **ret, struct error *err)
{
	json_error_t why;
	*ret = json_loads(text, 0, &why);
	return json_is_object(*ret)
		       ? 0
		       : error_set(err, EINVAL, "must be a JSON object: %s",
				   *ret ? "it is another kind of JSON value" : why.text);
}

/* Makes an array of structures of `size` bytes, which begin with the id. `read` reads the other members. */
static int read_cards(const json_t *root, size_t size,
		      int (*read)(const json_t *object, void *card, struct error *err), void **ret,
		      size_t *ret_count, struct error *err)
{
	const json_t *list = json_object_get(root, "cards");
	size_t count = json_array_size(list);
	if (!json_is_array(list) || count > CARDS_MAX)
		return error_set(err, EINVAL, "\"cards\": must be an array of at most %d GPUs",
				 CARDS_MAX);
	cleanup_free char *cards = calloc(count + 1, size);
	if (!cards)
		return error_set_errno(err, ENOMEM, "cards");
	for (size_t i = 0; i < count; i++) {
		const json_t *object = json_array_get(list, i);
		const char *id = json_string_or(object, "id", "");
		int r = *id && strlen(id) < KUBE_ID_MAX
				? read(object, strcpy(cards + i * size, id), err)
				: error_set(err, EINVAL, "id: must be 1 to %d bytes",
					    KUBE_ID_MAX - 1);
		if (r < 0)
			return error_add(err, r, "GPU %zu", i);
	}
	*ret = steal_pointer(&cards);
	*ret_count = count;
	return 0;
}

static int read_use(const json_t *object, void *data, struct error *err)
{
	static const char *const keys[3] = { "peak", "now", "held" };
	struct kube_use *card = data;
	unsigned *const to[3] = { &card->peak_pct, &card->now_pct, &card->held_pct };
	int64_t number = 0;
	int r = 0;
	for (size_t i = 0; r >= 0 && i < 3; i++) {
		r = read_number(object, keys[i], 0, PCT_MOST, &number, err);
		*to[i] = (unsigned)number;
	}
	if (r >= 0)
		r = read_number(object, "mem", 0, INT32_MAX, &number, err);
	card->memory_mib = (uint64_t)number;
	return r;
}

int uses_parse(const char *text, struct kube_uses *ret, struct error *err)
{
	cleanup_json json_t *root = NULL;
	int64_t measured_s;
	void *cards;
	size_t count;
	int r = load(text, &root, err);
	if (r >= 0)
		r = read_number(root, "t", 0, INT64_MAX, &measured_s, err);
	if (r >= 0)
		r = read_cards(root, sizeof(*ret->card), read_use, &cards, &count, err);
	if (r < 0)
		return error_sanitize(err, error_add(err, r, KUBE_NODE_USE));
	*ret = (struct kube_uses){ .measured_s = measured_s, .count = count, .card = cards };
	return 0;
}

static int read_cooldown(const json_t *object, void *data, struct error *err)
{
	struct kube_cooldown *card = data;
	int64_t rounds = 0;
	int r = read_number(object, "until", 0, INT64_MAX, &card->until_s, err);
	if (r >= 0)
		r = read_number(object, "rounds", 1, COOLDOWN_ROUNDS_MAX, &rounds, err);
	card->rounds = (unsigned)rounds;
	return r;
}

int cooldowns_parse(const char *text, struct kube_cooldowns *ret, struct error *err)
{
	cleanup_json json_t *root = NULL;
	void *cards;
	size_t count;
	int r = load(text, &root, err);
	if (r >= 0)
		r = read_cards(root, sizeof(*ret->card), read_cooldown, &cards, &count, err);
	if (r < 0)
		return error_sanitize(err, error_add(err, r, KUBE_NODE_COOLDOWNS));
	*ret = (struct kube_cooldowns){ .count = count, .card = cards };
	return 0;
}

/* Takes ownership of `root`. NULL unless its list has `count` cards: memory may have run out while it was made. */
static char *format(json_t *root, size_t count)
{
	bool is_whole = json_array_size(json_object_get(root, "cards")) == count;
	char *text = root && is_whole ? json_dumps(root, JSON_COMPACT) : NULL;
	json_decref(root);
	return text;
}

char *uses_format(const struct kube_uses *uses)
{
	json_t *list = json_array();
	for (size_t i = 0; i < uses->count; i++) {
		const struct kube_use *c = &uses->card[i];
		json_array_append_new(list, json_pack("{s:s,s:i,s:i,s:i,s:I}", "id", c->id, "peak",
						      (int)c->peak_pct, "now", (int)c->now_pct,
						      "held", (int)c->held_pct, "mem",
						      (json_int_t)c->memory_mib));
	}
	return format(json_pack("{s:I,s:o}", "t", (json_int_t)uses->measured_s, "cards", list),
		      uses->count);
}

char *cooldowns_format(const struct kube_cooldowns *cooldowns)
{
	json_t *list = json_array();
	for (size_t i = 0; i < cooldowns->count; i++) {
		const struct kube_cooldown *c = &cooldowns->card[i];
		json_array_append_new(list,
				      json_pack("{s:s,s:I,s:i}", "id", c->id, "until",
						(json_int_t)c->until_s, "rounds", (int)c->rounds));
	}
	return format(json_pack("{s:o}", "cards", list), cooldowns->count);
}

void uses_free(struct kube_uses *uses)
{
	free(uses->card);
	*uses = (struct kube_uses){ 0 };
}

void cooldowns_free(struct kube_cooldowns *cooldowns)
{
	free(cooldowns->card);
	*cooldowns = (struct kube_cooldowns){ 0 };
}
