#include "interpose/answers.h"

#include <string.h>

#include "interpose/sys.h"

#define PLACES 2048 /* a power of two; a CUDA runtime asks for some 500 names */
#define MOST (PLACES * 3 / 4)
#define NAME_SIZE 64

struct entry {
	struct question question;
	struct answer answer;
	char name[NAME_SIZE];
};

/*
 * Where an entry is, plus 1 (0: empty place), beneath the upper half of its hash. By themselves, and the
 * entries in a row: so what a process has not used costs it no page.
 */
static _Atomic uint64_t places[PLACES];
static struct entry entries[MOST];
static struct sys_lock keep_lock;
static unsigned kept;

static uint64_t load64(const char *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

/* Eight characters at a time; the last eight may overlap others. Once for a question that is new. */
static uint64_t hash_of(struct question *q)
{
	uint64_t h = (uint64_t)q->version ^ q->flags << 32, last = 0;

	if (q->hash)
		return q->hash;
	size_t length = strlen(q->name), i = 0;
	for (; i + 8 <= length; i += 8)
		h = (h ^ load64(q->name + i)) * 0x9e3779b97f4a7c15ULL;
	if (length >= 8)
		last = load64(q->name + length - 8);
	else
		memcpy(&last, q->name, length);
	h = (h ^ last ^ length) * 0x9e3779b97f4a7c15ULL;
	h ^= h >> 32;
	q->length = length;
	return q->hash = h ? h : 1;
}

static bool is_same(const struct question *a, const struct question *b)
{
	return a->hash == b->hash && a->asked == b->asked && a->version == b->version &&
	       a->flags == b->flags && a->length == b->length &&
	       memcmp(a->name, b->name, a->length) == 0;
}

/* Its entry; or NULL, and the place where it would go. */
static struct entry *find(struct question *q, size_t *ret_place)
{
	uint64_t hash = hash_of(q);

	for (size_t i = hash;; i++) {
		uint64_t there = atomic_load_explicit(&places[i & (PLACES - 1)],
						      memory_order_acquire);
		*ret_place = i & (PLACES - 1);
		if (!there)
			return NULL;
		struct entry *e = &entries[(uint32_t)there - 1];
		if (there >> 32 == hash >> 32 && is_same(&e->question, q))
			return e;
	}
}

bool answers_find(struct question *question, struct answer *ret_answer)
{
	size_t place;
	const struct entry *e = find(question, &place);

	if (e)
		*ret_answer = e->answer;
	return e;
}

void answers_keep(struct question *question, const struct answer *answer)
{
	size_t place;

	hash_of(question);
	if (question->length >= NAME_SIZE || !sys_trylock(&keep_lock))
		return;
	if (kept < MOST && !find(question, &place)) {
		struct entry *e = &entries[kept++];
		memcpy(e->name, question->name, question->length);
		e->question = *question;
		e->question.name = e->name;
		e->answer = *answer;
		atomic_store_explicit(&places[place], (question->hash >> 32) << 32 | kept,
				      memory_order_release);
	}
	sys_unlock(&keep_lock);
}
