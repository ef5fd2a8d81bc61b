#include "kube/hami/scores.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "kube/util/sanitize.h"

#define SCORES_MAX 256 /* most GPUs of a node */

void scores_free(struct kube_scores *scores)
{
	free(scores->id);
	free(scores->score);
	*scores = (struct kube_scores){ 0 };
}

int scores_new(size_t count, struct kube_scores *ret)
{
	struct kube_scores s = { .count = count };
	s.id = calloc(count ? count : 1, sizeof(*s.id));
	s.score = calloc(count ? count * count : 1, sizeof(*s.score));
	if (!s.id || !s.score) {
		scores_free(&s);
		return -ENOMEM;
	}
	*ret = s;
	return 0;
}

static size_t find(const struct kube_scores *s, const char *id)
{
	size_t i = 0;
	while (i < s->count && strcmp(s->id[i], id) != 0)
		i++;
	return i;
}

static int read_id(const json_t *entry, size_t i, struct kube_scores *s, struct error *err)
{
	const char *id = json_string_value(json_object_get(entry, "uuid"));
	if (!id || !*id || strlen(id) >= KUBE_ID_MAX)
		return error_set(err, EINVAL, "entry %zu: uuid: must be a string of 1 to %d bytes",
				 i + 1, KUBE_ID_MAX - 1);
	if (find(s, id) < s->count)
		return error_set(err, EINVAL, "entry %zu: %s: has an entry already", i + 1, id);
	strcpy(s->id[i], id);
	return 0;
}

static int read_scores(json_t *entry, size_t i, struct kube_scores *s, struct error *err)
{
	json_t *all = json_object_get(entry, "score"), *value;
	const char *id;
	if (all && !json_is_object(all))
		return error_set(err, EINVAL, "%s: score: must be an object", s->id[i]);
	json_object_foreach(all, id, value)
	{
		size_t j = find(s, id);
		json_int_t score = json_integer_value(value);
		if (j == s->count)
			return error_set(err, EINVAL, "%s: score: %.80s: is not a GPU of the node",
					 s->id[i], id);
		if (!json_is_integer(value) || score < 0 || score > INT_MAX)
			return error_set(err, EINVAL,
					 "%s: score: %.80s: must be a whole number from 0 to %d",
					 s->id[i], id, INT_MAX);
		s->score[i * s->count + j] = (int)score;
	}
	return 0;
}

static int read_all(const json_t *list, struct kube_scores *s, struct error *err)
{
	int r = 0;
	for (size_t i = 0; r >= 0 && i < s->count; i++)
		r = read_id(json_array_get(list, i), i, s, err);
	for (size_t i = 0; r >= 0 && i < s->count; i++)
		r = read_scores(json_array_get(list, i), i, s, err);
	return r;
}

int scores_parse(const char *text, struct kube_scores *ret, struct error *err)
{
	struct kube_scores s;
	cleanup_json json_t *list = json_loads(text, 0, NULL);
	size_t count = json_array_size(list);
	if (!json_is_array(list) || count > SCORES_MAX)
		return error_set(err, EINVAL,
				 KUBE_NODE_SCORE ": must be a JSON array of at most %d entries",
				 SCORES_MAX);
	if (scores_new(count, &s) < 0)
		return error_set_errno(err, ENOMEM, KUBE_NODE_SCORE);
	int r = read_all(list, &s, err);
	if (r < 0) {
		scores_free(&s);
		return error_sanitize(err, error_add(err, r, KUBE_NODE_SCORE));
	}
	*ret = s;
	return 0;
}

char *scores_format(const struct kube_scores *s)
{
	cleanup_json json_t *list = json_array();
	for (size_t i = 0; i < s->count; i++) {
		json_t *entry = json_object(), *scores = json_object();
		for (size_t j = 0; j < s->count; j++)
			if (j != i)
				json_object_set_new(scores, s->id[j],
						    json_integer(s->score[i * s->count + j]));
		json_object_set_new(entry, "uuid", json_string(s->id[i]));
		if (json_object_set_new(entry, "score", scores) < 0 ||
		    json_array_append_new(list, entry) < 0)
			return NULL;
	}
	return json_dumps(list, JSON_COMPACT);
}
