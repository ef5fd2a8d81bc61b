#include "kube/hami/cards.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/parse.h"
#include "kube/util/sanitize.h"

/* Another program writes the annotation, and without bounds could make this program use much memory. */
#define CARDS_MAX 1024
#define NUMBER_MAX INT32_MAX

void cards_free(struct kube_cards *cards)
{
	for (size_t i = 0; i < cards->count; i++)
		json_decref(cards->card[i].mig_profiles);
	free(cards->card);
	*cards = (struct kube_cards){ 0 };
}

void cards_type(const char *name, char type[CARD_TYPE_MAX])
{
	snprintf(type, CARD_TYPE_MAX, "%s%s", strncmp(name, "NVIDIA", 6) ? "NVIDIA-" : "", name);
}

static int copy_text(const char *from, char *to, size_t size, struct error *err)
{
	if (strlen(from) >= size)
		return error_set(err, EINVAL, "'%.40s...': must be at most %zu bytes", from,
				 size - 1);
	strcpy(to, from);
	return 0;
}

static int read_text(const json_t *object, const char *key, char *to, size_t size, struct error *err)
{
	const json_t *value = json_object_get(object, key);
	if (!value)
		return 0;
	if (!json_is_string(value))
		return error_set(err, EINVAL, "%s: must be a string", key);
	int r = copy_text(json_string_value(value), to, size, err);
	return r < 0 ? error_add(err, r, "%s", key) : 0;
}

static int read_number(const json_t *object, const char *key, uint64_t *ret, struct error *err)
{
	const json_t *value = json_object_get(object, key);
	*ret = 0;
	if (!value)
		return 0;
	json_int_t number = json_integer_value(value);
	if (!json_is_integer(value) || number < 0 || number > NUMBER_MAX)
		return error_set(err, EINVAL, "%s: must be a whole number from 0 to %d", key,
				 NUMBER_MAX);
	*ret = (uint64_t)number;
	return 0;
}

static int read_health(const json_t *object, bool *ret, struct error *err)
{
	const json_t *value = json_object_get(object, "health");
	if (value && !json_is_boolean(value))
		return error_set(err, EINVAL, "health: must be true or false");
	*ret = json_is_true(value);
	return 0;
}

static int read_profiles(const json_t *object, json_t **ret, struct error *err)
{
	json_t *value = json_object_get(object, "migProfiles");
	if (value && !json_is_array(value))
		return error_set(err, EINVAL, "migProfiles: must be an array");
	*ret = json_array_size(value) ? json_incref(value) : NULL;
	return 0;
}

static int parse_object(const json_t *object, struct kube_card *card, struct error *err)
{
	uint64_t number[5] = { 0 };
	static const char *const keys[5] = { "index", "count", "devmem", "devcore", "numa" };
	if (!json_is_object(object))
		return error_set(err, EINVAL, "must be an object");
	int r = read_text(object, "id", card->id, sizeof(card->id), err);
	if (r >= 0 && !card->id[0])
		r = error_set(err, EINVAL, "id: missing");
	for (size_t i = 0; r >= 0 && i < 5; i++)
		r = read_number(object, keys[i], &number[i], err);
	if (r >= 0)
		r = read_text(object, "type", card->type, sizeof(card->type), err);
	if (r >= 0)
		r = read_text(object, "mode", card->mode, sizeof(card->mode), err);
	if (r >= 0)
		r = read_health(object, &card->is_healthy, err);
	if (r >= 0)
		r = read_profiles(object, &card->mig_profiles, err);
	card->index = (unsigned)number[0];
	card->count = (unsigned)number[1];
	card->memory_mib = number[2];
	card->cores_pct = (unsigned)number[3];
	card->numa = (unsigned)number[4];
	return r;
}

static int parse_json(const char *text, struct kube_cards *cards, struct error *err)
{
	json_error_t why;
	cleanup_json json_t *list = json_loads(text, 0, &why);
	if (!json_is_array(list))
		return error_set(err, EINVAL, "must be a JSON array: %s",
				 list ? "it is another kind of JSON value" : why.text);
	size_t count = json_array_size(list);
	if (count > CARDS_MAX)
		return error_set(err, EINVAL, "%zu GPUs: must be at most %d", count, CARDS_MAX);
	cards->card = calloc(count ? count : 1, sizeof(*cards->card));
	if (!cards->card)
		return error_set_errno(err, ENOMEM, "GPUs");
	cards->count = count;
	for (size_t i = 0; i < count; i++) {
		int r = parse_object(json_array_get(list, i), &cards->card[i], err);
		if (r < 0)
			return error_add(err, r, "GPU %zu", i);
	}
	return 0;
}

enum {
	FIELD_ID,
	FIELD_COUNT,
	FIELD_MEMORY,
	FIELD_CORES,
	FIELD_TYPE,
	FIELD_NUMA,
	FIELD_HEALTH,
	FIELD_INDEX,
	FIELD_MODE,
	FIELDS
};
#define FIELDS_OF_FIRST (FIELD_HEALTH + 1)

static int field_number(const char *name, const char *text, uint64_t *ret, struct error *err)
{
	int64_t number;
	int r = parse_int(text, 0, NUMBER_MAX, &number, err);
	if (r < 0)
		return error_add(err, r, "%s", name);
	*ret = (uint64_t)number;
	return 0;
}

static int parse_fields(char *const field[FIELDS], struct kube_card *card, struct error *err)
{
	uint64_t count = 0, cores = 0, numa = 0, index = 0;
	bool is_true = !strcmp(field[FIELD_HEALTH], "true");
	if (!is_true && strcmp(field[FIELD_HEALTH], "false"))
		return error_set(err, EINVAL, "health: '%.20s': must be true or false",
				 field[FIELD_HEALTH]);
	card->is_healthy = is_true;
	if (!*field[FIELD_ID])
		return error_set(err, EINVAL, "id: missing");
	int r = copy_text(field[FIELD_ID], card->id, sizeof(card->id), err);
	if (r >= 0)
		r = copy_text(field[FIELD_TYPE], card->type, sizeof(card->type), err);
	if (r >= 0)
		r = copy_text(field[FIELD_MODE], card->mode, sizeof(card->mode), err);
	if (r >= 0)
		r = field_number("count", field[FIELD_COUNT], &count, err);
	if (r >= 0)
		r = field_number("mem", field[FIELD_MEMORY], &card->memory_mib, err);
	if (r >= 0)
		r = field_number("core", field[FIELD_CORES], &cores, err);
	if (r >= 0)
		r = field_number("numa", field[FIELD_NUMA], &numa, err);
	if (r >= 0)
		r = field_number("index", field[FIELD_INDEX], &index, err);
	if (r < 0)
		return r;
	card->count = (unsigned)count;
	card->cores_pct = (unsigned)cores;
	card->numa = (unsigned)numa;
	card->index = (unsigned)index;
	return 0;
}

static int parse_segment(char *segment, struct kube_card *card, struct error *err)
{
	static char zero[] = "0", mode[] = CARD_MODE_DEFAULT;
	char *field[FIELDS] = { [FIELD_INDEX] = zero, [FIELD_MODE] = mode };
	unsigned count = 0;
	for (char *part; (part = strsep(&segment, ","));) {
		if (count < FIELDS)
			field[count] = part;
		count++;
	}
	if (count != FIELDS_OF_FIRST && count != FIELDS)
		return error_set(err, EINVAL, "%u fields: must be 7 or 9", count);
	return parse_fields(field, card, err);
}

static int parse_text(const char *text, struct kube_cards *cards, struct error *err)
{
	size_t count = 0;
	for (const char *c = text; *c; c++)
		count += *c == ':';
	if (!count || text[strlen(text) - 1] != ':' || count > CARDS_MAX)
		return error_set(err, EINVAL,
				 "'%.40s': must be a JSON array, or the fields of at most %d "
				 "GPUs, with ':' after each GPU",
				 text, CARDS_MAX);
	char *copy = strdup(text), *rest = copy;
	cards->card = calloc(count, sizeof(*cards->card));
	int r = copy && cards->card ? 0 : error_set_errno(err, ENOMEM, "GPUs");
	cards->count = cards->card ? count : 0;
	for (size_t i = 0; r >= 0 && i < count; i++) {
		r = parse_segment(strsep(&rest, ":"), &cards->card[i], err);
		if (r < 0)
			error_add(err, r, "GPU %zu", i);
	}
	free(copy);
	return r;
}

int cards_parse(const char *text, struct kube_cards *ret, struct error *err)
{
	struct kube_cards cards = { 0 };
	const char *first = text + strspn(text, " \t\r\n");
	int r = *first == '[' ? parse_json(first, &cards, err) : parse_text(text, &cards, err);
	if (r < 0) {
		cards_free(&cards);
		return error_sanitize(err, error_add(err, r, KUBE_NODE_REGISTER));
	}
	*ret = cards;
	return 0;
}

static int put_number(json_t *object, const char *key, uint64_t value)
{
	return value ? json_object_set_new(object, key, json_integer((json_int_t)value)) : 0;
}

static int put_text(json_t *object, const char *key, const char *value)
{
	return *value ? json_object_set_new(object, key, json_string(value)) : 0;
}

static json_t *to_object(const struct kube_card *card)
{
	json_t *object = json_object();
	if (put_text(object, "id", card->id) || put_number(object, "index", card->index) ||
	    put_number(object, "count", card->count) ||
	    put_number(object, "devmem", card->memory_mib) ||
	    put_number(object, "devcore", card->cores_pct) || put_text(object, "type", card->type) ||
	    put_number(object, "numa", card->numa) || put_text(object, "mode", card->mode) ||
	    (card->mig_profiles && json_object_set(object, "migProfiles", card->mig_profiles)) ||
	    (card->is_healthy && json_object_set_new(object, "health", json_true()))) {
		json_decref(object);
		return NULL;
	}
	return object;
}

char *cards_format(const struct kube_cards *cards)
{
	cleanup_json json_t *list = json_array();
	for (size_t i = 0; i < cards->count; i++)
		if (json_array_append_new(list, to_object(&cards->card[i])) < 0)
			return NULL;
	return json_dumps(list, JSON_COMPACT);
}
