#include "daemon/kubelet/kube/desired_metadata.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kube/hami/annotations.h"

#define LABEL_PART_MAX 63
#define LABEL_PREFIX_MAX 253
#define ALNUM "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

/* A valid part of a label: letters, digits, '-', '_' and '.', with a letter or digit at both ends. */
static bool is_label_part(const char *text, size_t length)
{
	return length && length <= LABEL_PART_MAX && strspn(text, ALNUM "-_.") >= length &&
	       strchr(ALNUM, text[0]) && strchr(ALNUM, text[length - 1]);
}

static bool is_label_name(const char *name)
{
	const char *slash = strchr(name, '/');
	size_t prefix = slash ? (size_t)(slash - name) : 0;
	if (slash && (!prefix || prefix > LABEL_PREFIX_MAX ||
		      strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-.") != prefix))
		return false;
	name = slash ? slash + 1 : name;
	return is_label_part(name, strlen(name));
}

/* Splits `text` into labels, which point into `text`. */
static int split_labels(char *text, struct patch_pair *label, size_t *ret_count, struct error *err)
{
	size_t count = 0;
	*ret_count = 0;
	if (!strcmp(text, "none"))
		return 0;
	for (char *part; (part = strsep(&text, ","));) {
		part += strspn(part, " \t");
		char *value = strchr(part, '=');
		if (count == DESIRED_LABELS_MAX)
			return error_set(err, EINVAL, "too many labels: list at most %d",
					 DESIRED_LABELS_MAX);
		if (value)
			*value++ = '\0';
		if (!value || !is_label_name(part) ||
		    (*value && !is_label_part(value, strlen(value))))
			return error_set(err, EINVAL,
					 "'%.80s%s%.80s': must be NAME=VALUE, such as gpu=on", part,
					 value ? "=" : "", value ? value : "");
		label[count++] = (struct patch_pair){ part, value };
	}
	*ret_count = count;
	return 0;
}

int desired_metadata_check_labels(const char *labels, struct error *err)
{
	struct patch_pair label[DESIRED_LABELS_MAX];
	size_t count;
	char *text = strdup(labels);
	int r = text ? split_labels(text, label, &count, err)
		     : error_set_errno(err, ENOMEM, "labels");
	free(text);
	return r;
}

int desired_metadata_make(const struct kube_cards *cards, const struct kube_scores *scores,
			  const char *labels, struct desired_metadata *ret, struct error *err)
{
	struct desired_metadata w = { .cards = cards_format(cards),
				      .scores = scores ? scores_format(scores) : NULL,
				      .label_text = strdup(labels) };
	int r = w.cards && w.label_text && (w.scores || !scores)
			? split_labels(w.label_text, w.label, &w.labels, err)
			: error_set_errno(err, ENOMEM, "the node's GPUs");
	if (r < 0) {
		desired_metadata_free(&w);
		return r;
	}
	*ret = w;
	return 0;
}

void desired_metadata_free(struct desired_metadata *desired)
{
	free(desired->cards);
	free(desired->scores);
	free(desired->uses);
	free(desired->label_text);
	*desired = (struct desired_metadata){ 0 };
}

static bool is_same(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

bool desired_metadata_equal(const struct desired_metadata *a, const struct desired_metadata *b)
{
	bool is_equal = is_same(a->cards, b->cards) && is_same(a->scores, b->scores) &&
			is_same(a->uses, b->uses) && a->labels == b->labels;
	for (size_t i = 0; is_equal && i < a->labels; i++)
		is_equal = is_same(a->label[i].name, b->label[i].name) &&
			   is_same(a->label[i].value, b->label[i].value);
	return is_equal;
}

static bool has(const json_t *metadata, const char *part, const struct patch_pair *pair)
{
	const json_t *all = json_object_get(metadata, part);
	return is_same(json_string_value(json_object_get(all, pair->name)), pair->value);
}

struct metadata_diff desired_metadata_diff(const struct desired_metadata *desired,
					   const json_t *metadata)
{
	struct metadata_diff w = { 0 };
	const struct patch_pair annotation[] = { { KUBE_NODE_REGISTER, desired->cards },
						 { KUBE_NODE_SCORE, desired->scores },
						 { KUBE_NODE_USE, desired->uses } };
	for (size_t i = 0; i < 3; i++)
		if (annotation[i].value && !has(metadata, "annotations", &annotation[i]))
			w.annotation[w.annotations++] = annotation[i];
	for (size_t i = 0; i < desired->labels; i++)
		if (!has(metadata, "labels", &desired->label[i]))
			w.label[w.labels++] = desired->label[i];
	return w;
}
