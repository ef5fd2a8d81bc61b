#include "kube/own/uses.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "kube/util/sanitize.h"

#define CARDS_MAX 1024
#define PCT_MOST 10000 /* a larger percentage is invalid */

void uses_free(struct kube_uses *uses)
{
	free(uses->card);
	*uses = (struct kube_uses){ 0 };
}

static int read_number(const json_t *object, const char *key, uint64_t most, uint64_t *ret,
		       struct error *err)
{
	const json_t *value = json_object_get(object, key);
	json_int_t number = json_integer_value(value);
	if (!json_is_integer(value) || number < 0 || (uint64_t)number > most)
		return error_set(err, EINVAL, "%s: must be a whole number from 0 to %llu", key,
				 (unsigned long long)most);
	*ret = (uint64_t)number;
	return 0;
}

static int parse_card(const json_t *object, struct kube_use *card, struct error *err)
{
	static const char *const keys[3] = { "peak", "now", "held" };
	unsigned *const to[3] = { &card->peak_pct, &card->now_pct, &card->held_pct };
	const char *id = json_string_value(json_object_get(object, "id"));
	int r = 0;
	if (!id || !*id || strlen(id) >= sizeof(card->id))
		return error_set(err, EINVAL, "id: must be 1 to %zu bytes", sizeof(card->id) - 1);
	strcpy(card->id, id);
	for (size_t i = 0; r >= 0 && i < 3; i++) {
		uint64_t pct = 0;
		r = read_number(object, keys[i], PCT_MOST, &pct, err);
		*to[i] = (unsigned)pct;
	}
	return r < 0 ? r : read_number(object, "mem", INT32_MAX, &card->memory_mib, err);
}

static int parse(const json_t *root, struct kube_uses *uses, struct error *err)
{
	const json_t *list = json_object_get(root, "cards");
	uint64_t measured_s = 0;
	int r = read_number(root, "t", INT64_MAX, &measured_s, err);
	if (r < 0)
		return r;
	uses->measured_s = (int64_t)measured_s;
	size_t count = json_array_size(list);
	if (!json_is_array(list) || count > CARDS_MAX)
		return error_set(err, EINVAL, "\"cards\": must be an array of at most %d GPUs",
				 CARDS_MAX);
	uses->card = calloc(count + 1, sizeof(*uses->card));
	if (!uses->card)
		return error_set_errno(err, ENOMEM, "cards");
	for (; uses->count < count; uses->count++) {
		r = parse_card(json_array_get(list, uses->count), &uses->card[uses->count], err);
		if (r < 0)
			return error_add(err, r, "GPU %zu", uses->count);
	}
	return 0;
}

int uses_parse(const char *text, struct kube_uses *ret, struct error *err)
{
	struct kube_uses uses = { 0 };
	json_error_t why;
	cleanup_json json_t *root = json_loads(text, 0, &why);
	int r = json_is_object(root)
			? parse(root, &uses, err)
			: error_set(err, EINVAL, "must be a JSON object: %s",
				    root ? "it is another kind of JSON value" : why.text);
	if (r < 0) {
		uses_free(&uses);
		return error_sanitize(err, error_add(err, r, KUBE_NODE_USE));
	}
	*ret = uses;
	return 0;
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
	bool is_whole = json_array_size(list) == uses->count;
	cleanup_json json_t *root = json_pack("{s:I,s:o}", "t", (json_int_t)uses->measured_s,
					      "cards", list);
	return root && is_whole ? json_dumps(root, JSON_COMPACT) : NULL;
}
