#include "scheduler/request/workload_histogram.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fnv.h"

/* The growth of `unit` per request: 2 to the power of 1 / HISTOGRAM_HALF_LIFE. */
#define GROWTH 1.000693387462580632
/* When `unit` reaches this value, all counts and `unit` are divided by `unit`, to keep doubles exact. */
#define UNIT_MOST 1e9
/* Requests whose lists of card types need more bytes are unusual, and not counted. */
#define WORDS_BYTES_MOST 4096

static struct place_request kind_of(const struct place_request *request)
{
	return (struct place_request){
		.count = request->count,
		.memory = request->memory,
		.memory_bytes = request->memory == PLACE_MEMORY_BYTES ? request->memory_bytes : 0,
		.memory_pct = request->memory == PLACE_MEMORY_PCT ? request->memory_pct : 0,
		.cores_mpct = place_needs_whole_card(request) ? PLACE_CORES_WHOLE_MPCT
							      : request->cores_mpct,
		.use_type = request->use_type,
		.nouse_type = request->nouse_type,
	};
}

static bool are_words_equal(const struct place_words *a, const struct place_words *b)
{
	bool are = a->count == b->count;
	for (size_t i = 0; are && i < a->count; i++)
		are = !strcmp(a->word[i], b->word[i]);
	return are;
}

static bool is_same_kind(const struct place_request *a, const struct place_request *b)
{
	return a->count == b->count && a->memory == b->memory &&
	       a->memory_bytes == b->memory_bytes && a->memory_pct == b->memory_pct &&
	       a->cores_mpct == b->cores_mpct && are_words_equal(&a->use_type, &b->use_type) &&
	       are_words_equal(&a->nouse_type, &b->nouse_type);
}

static uint64_t digest_of(const struct place_request *kind)
{
	const struct place_words *const lists[] = { &kind->use_type, &kind->nouse_type };
	const uint64_t numbers[] = { kind->count, kind->memory, kind->memory_bytes,
				     kind->memory_pct, kind->cores_mpct };
	uint64_t digest = fnv64(FNV64_BEGIN, numbers, sizeof(numbers));
	for (size_t l = 0; l < 2; l++) {
		digest = fnv64(digest, &lists[l]->count, sizeof(lists[l]->count));
		for (size_t i = 0; i < lists[l]->count; i++)
			digest = fnv64(digest, lists[l]->word[i], strlen(lists[l]->word[i]) + 1);
	}
	return digest;
}

static size_t words_bytes(const struct place_words *words)
{
	size_t bytes = words->count * sizeof(*words->word);
	for (size_t i = 0; i < words->count; i++)
		bytes += strlen(words->word[i]) + 1;
	return bytes;
}

/* Replaces the words in the kind's lists by copies, which the returned allocation holds; NULL if memory runs out. */
static const char **copy_words(struct place_request *kind)
{
	struct place_words *const lists[] = { &kind->use_type, &kind->nouse_type };
	size_t words = kind->use_type.count + kind->nouse_type.count;
	const char **word = malloc(words_bytes(&kind->use_type) + words_bytes(&kind->nouse_type) + 1);
	const char **next = word;
	char *text = (char *)(word + words);
	for (size_t l = 0; word && l < 2; l++) {
		const char **first = next;
		for (size_t i = 0; i < lists[l]->count; i++) {
			*next++ = text;
			text = stpcpy(text, lists[l]->word[i]) + 1;
		}
		lists[l]->word = first;
	}
	return word;
}

static unsigned least_counted(const struct histogram *histogram)
{
	unsigned least = 0;
	for (unsigned k = 1; k < histogram->kinds.count; k++)
		if (histogram->count[k] < histogram->count[least])
			least = k;
	return least;
}

static bool was_seen_before(struct histogram *histogram, const struct place_request *kind)
{
	uint64_t digest = digest_of(kind);
	for (unsigned i = 0; i < HISTOGRAM_ONCE; i++)
		if (histogram->once[i] == digest) {
			histogram->once[i] = 0;
			return true;
		}
	histogram->once[histogram->next_once++ % HISTOGRAM_ONCE] = digest;
	return false;
}

static void next_unit(struct histogram *histogram)
{
	histogram->unit *= GROWTH;
	if (histogram->unit < UNIT_MOST)
		return;
	for (unsigned k = 0; k < histogram->kinds.count; k++)
		histogram->count[k] /= histogram->unit;
	histogram->unit = 1;
}

/* Returns -EAGAIN if the kind is not added: its lists are too long, or `kinds` is full and the kind came for the first time. */
static int make_place(struct histogram *histogram, struct place_request *kind, unsigned *ret)
{
	bool is_full = histogram->kinds.count == PLACE_KINDS_MAX;
	if (words_bytes(&kind->use_type) + words_bytes(&kind->nouse_type) > WORDS_BYTES_MOST ||
	    (is_full && !was_seen_before(histogram, kind)))
		return -EAGAIN;
	const char **words = copy_words(kind);
	if (!words)
		return -ENOMEM;
	unsigned k = is_full ? least_counted(histogram) : histogram->kinds.count++;
	free(histogram->words[k]);
	histogram->words[k] = words;
	histogram->kinds.kind[k] = (struct place_kind){ .request = *kind };
	histogram->count[k] = 0;
	*ret = k;
	return 0;
}

int histogram_count(struct histogram *histogram, const struct place_request *request,
		    unsigned *ret_kind)
{
	struct place_request kind = kind_of(request);
	unsigned k = 0;
	if (histogram->unit <= 0)
		histogram->unit = 1;
	next_unit(histogram);
	while (k < histogram->kinds.count && !is_same_kind(&histogram->kinds.kind[k].request, &kind))
		k++;
	bool is_new = k == histogram->kinds.count;
	int r = is_new ? make_place(histogram, &kind, &k) : 0;
	if (r < 0)
		return r == -EAGAIN ? 0 : r;
	histogram->count[k] += histogram->unit;
	if (is_new)
		*ret_kind = k;
	return is_new;
}

void histogram_price(struct histogram *histogram, const uint64_t room[PLACE_KINDS_MAX])
{
	double all = 0;
	for (unsigned k = 0; k < histogram->kinds.count; k++)
		all += histogram->count[k];
	for (unsigned k = 0; k < histogram->kinds.count; k++)
		histogram->kinds.kind[k].price = histogram->count[k] / all / ((double)room[k] + 1);
}

void histogram_free(struct histogram *histogram)
{
	for (unsigned k = 0; k < histogram->kinds.count; k++)
		free(histogram->words[k]);
	*histogram = (struct histogram){ 0 };
}
