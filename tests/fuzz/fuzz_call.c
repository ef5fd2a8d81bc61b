/*
 * What a caller of the extender sends: it is read, or refused, as the JSON library does by itself; and an answer with any verdicts
 * on the nodes in it is JSON, with each where it belongs.
 */
#include "fuzz.h"

#include "base/text.h"
#include "json_arena.h"
#include "kube/util/untrusted_json.h"
#include "scheduler/extender/filter_answer.h"

static const json_t *nodes_of(const json_t *all)
{
	const json_t *whole = json_object_get(all, "Nodes");
	return json_is_object(whole) ? json_object_get(whole, "items")
				     : json_object_get(all, "NodeNames");
}

static const char *name_at(const json_t *all, size_t i)
{
	const json_t *one = json_array_get(nodes_of(all), i);
	if (json_is_object(json_object_get(all, "Nodes")))
		one = json_object_get(json_object_get(one, "metadata"), "name");
	return json_string_value(one);
}

static bool is_duplicate(const struct call_args *args, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (args->name[k].text && !strcmp(args->name[k].text, args->name[i].text))
			return true;
	return false;
}

/* As extender_filter() does: each name once, what is none nowhere. */
static void judge(struct filter_answer *answer, const uint8_t *data, size_t size)
{
	const struct call_args *args = answer->args;
	for (size_t i = 0; i < args->count; i++) {
		struct filter_verdict *verdict = &answer->verdict[i];
		if (!args->name[i].text || is_duplicate(args, i))
			continue;
		*verdict = (struct filter_verdict){ FILTER_FITS + data[i % size] % 3U, 0 };
		answer->fits += verdict->list == FILTER_FITS;
		/* Any of what came is said, too. */
		if (verdict->list != FILTER_FITS)
			FUZZ_CHECK(!filter_answer_add_reason(
				answer,
				args->name[data[i % size] % (i + 1)].text
					? args->name[data[i % size] % (i + 1)].text
					: "",
				&verdict->reason));
	}
}

static bool has_name(const json_t *list, const char *name)
{
	const json_t *one;
	size_t i;
	json_array_foreach(list, i, one) if (!strcmp(json_string_value(one), name)) return true;
	return false;
}

static void check_answer(const struct filter_answer *answer)
{
	static const char *const lists[] = {
		[FILTER_FAILED] = "FailedNodes", [FILTER_UNRESOLVABLE] = "FailedAndUnresolvableNodes"
	};
	size_t said[FILTER_LISTS] = { 0 };
	char *text = filter_answer_text(answer);
	json_t *all = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	FUZZ_CHECK(json_is_object(all) && json_object_size(all) == 5);
	for (size_t i = 0; i < answer->args->count; i++) {
		const struct filter_verdict *verdict = &answer->verdict[i];
		const char *name = answer->args->name[i].text;
		said[verdict->list]++;
		if (verdict->list == FILTER_FITS && !answer->args->whole)
			FUZZ_CHECK(has_name(json_object_get(all, "NodeNames"), name));
		if (verdict->list < FILTER_FAILED)
			continue;
		const char *why = json_string_value(
			json_object_get(json_object_get(all, lists[verdict->list]), name));
		FUZZ_CHECK(why && !strcmp(why, filter_answer_reason(answer, verdict->reason)));
	}
	const json_t *fit = answer->args->whole
				    ? json_object_get(json_object_get(all, "Nodes"), "items")
				    : json_object_get(all, "NodeNames");
	FUZZ_CHECK(json_array_size(fit) == said[FILTER_FITS]);
	for (enum filter_list list = FILTER_FAILED; list < FILTER_LISTS; list++)
		FUZZ_CHECK(json_object_size(json_object_get(all, lists[list])) == said[list]);
	json_decref(all);
	free(text);
}

static void check_names(const struct call_args *args, const json_t *all)
{
	FUZZ_CHECK(args->count == json_array_size(nodes_of(all)));
	for (size_t i = 0; i < args->count; i++) {
		const char *name = name_at(all, i);
		FUZZ_CHECK(!name == !args->name[i].text);
		FUZZ_CHECK(!name || (!strcmp(name, args->name[i].text) &&
				     strlen(name) == args->name[i].length));
	}
}

static void take(const uint8_t *data, size_t size)
{
	struct call_args *args = NULL;
	struct error err = { 0 };
	json_t *all = untrusted_json_parse((const char *)data, size, JSON_REJECT_DUPLICATES, NULL);
	int r = call_args_read((const char *)data, size, &args, &err);
	FUZZ_CHECK((r == 0) == (all != NULL));
	if (r < 0) {
		FUZZ_CHECK(err.code > 0 && err.text[0]);
		FUZZ_CHECK(*text_clean_prefix_end(err.text, sizeof(err.text)) == '\0');
		return;
	}
	check_names(args, all);
	struct filter_answer *answer = filter_answer_new(args);
	FUZZ_CHECK(answer);
	judge(answer, data, size);
	check_answer(answer);
	filter_answer_put(answer);
	call_args_put(args);
	json_decref(all);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);
	json_arena_begin();
	take((const uint8_t *)text, size);
	json_arena_end();
	free(text);
	return 0;
}
