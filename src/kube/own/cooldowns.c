#include "kube/own/cooldowns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "kube/util/sanitize.h"

#define CARDS_MAX 1024

void cooldowns_free(struct kube_cooldowns *cooldowns)
{
	free(cooldowns->card);
	*cooldowns = (struct kube_cooldowns){ 0 };
}

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

static int parse_card(const json_t *object, struct kube_cooldown *card, struct error *err)
{
	const char *id = json_string_value(json_object_get(object, "id"));
	int64_t rounds = 0;
	if (!id || !*id || strlen(id) >= sizeof(card->id))
		return error_set(err, EINVAL, "id: must be 1 to %zu bytes", sizeof(card->id) - 1);
	strcpy(card->id, id);
	int r = read_number(object, "until", 0, INT64_MAX, &card->until_s, err);
	if (r >= 0)
		r = read_number(object, "rounds", 1, COOLDOWN_ROUNDS_MAX, &rounds, err);
	card->rounds = (unsigned)rounds;
	return r;
}

static int parse(const json_t *root, struct kube_cooldowns *cooldowns, struct error *err)
{
	const json_t *list = json_object_get(root, "cards");
	size_t count = json_array_size(list);
	if (!json_is_array(list) || count > CARDS_MAX)
		return error_set(err, EINVAL, "\"cards\": must be an array of at most %d GPUs",
				 CARDS_MAX);
	cooldowns->card = calloc(count + 1, sizeof(*cooldowns->card));
	if (!cooldowns->card)
		return error_set_errno(err, ENOMEM, "cards");
	for (; cooldowns->count < count; cooldowns->count++) {
		int r = parse_card(json_array_get(list, cooldowns->count),
				   &cooldowns->card[cooldowns->count], err);
		if (r < 0)
			return error_add(err, r, "GPU %zu", cooldowns->count);
	}
	return 0;
}

int cooldowns_parse(const char *text, struct kube_cooldowns *ret, struct error *err)
{
	struct kube_cooldowns cooldowns = { 0 };
	json_error_t why;
	cleanup_json json_t *root = json_loads(text, 0, &why);
	int r = json_is_object(root)
			? parse(root, &cooldowns, err)
			: error_set(err, EINVAL, "must be a JSON object: %s",
				    root ? "it is another kind of JSON value" : why.text);
	if (r < 0) {
		cooldowns_free(&cooldowns);
		return error_sanitize(err, error_add(err, r, KUBE_NODE_COOLDOWNS));
	}
	*ret = cooldowns;
	return 0;
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
	bool is_whole = json_array_size(list) == cooldowns->count;
	cleanup_json json_t *root = json_pack("{s:o}", "cards", list);
	return root && is_whole ? json_dumps(root, JSON_COMPACT) : NULL;
}
