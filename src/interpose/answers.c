#include "interpose/answers.h"

#include <string.h>

#include "interpose/sys.h"
#include "interpose/text.h"

#define PLACES 2048 /* a power of two; a CUDA runtime asks for some 500 names */
#define MOST (PLACES * 3 / 4)
#define NAME_SIZE 64

struct place {
	_Atomic uint64_t hash; /* written last; 0: empty */
	struct question question;
	struct answer answer;
	char name[NAME_SIZE];
};

static struct place places[PLACES]; /* touched as used */
static struct sys_lock keep_lock;
static unsigned kept;

/* Once for a question: it is asked for twice where the answer is new. */
static uint64_t hash_of(struct question *q)
{
	uint64_t h = (uint64_t)q->version ^ q->flags << 32;
	size_t length = 0;

	if (q->hash)
		return q->hash;
	for (; q->name[length]; length++)
		h = h * 31 + (unsigned char)q->name[length];
	q->length = length;
	h *= 0x9e3779b97f4a7c15ULL;
	return q->hash = h ? h : 1;
}

static bool is_same(const struct question *a, const struct question *b)
{
	return a->asked == b->asked && a->version == b->version && a->flags == b->flags &&
	       text_equal(a->name, b->name);
}

/* The place that has it, or the empty one where it would go. */
static struct place *find(const struct question *q, uint64_t hash)
{
	for (size_t i = hash >> 32;; i++) {
		struct place *p = &places[i & (PLACES - 1)];
		uint64_t there = atomic_load_explicit(&p->hash, memory_order_acquire);
		if (!there || (there == hash && is_same(&p->question, q)))
			return p;
	}
}

bool answers_find(struct question *question, struct answer *ret_answer)
{
	struct place *p = find(question, hash_of(question));

	if (!atomic_load_explicit(&p->hash, memory_order_relaxed))
		return false;
	*ret_answer = p->answer;
	return true;
}

void answers_keep(struct question *question, const struct answer *answer)
{
	uint64_t hash = hash_of(question);

	if (question->length >= NAME_SIZE || !sys_trylock(&keep_lock))
		return;
	struct place *p = find(question, hash);
	if (kept < MOST && !atomic_load_explicit(&p->hash, memory_order_relaxed)) {
		kept++;
		memcpy(p->name, question->name, question->length + 1);
		p->question = *question;
		p->question.name = p->name;
		p->answer = *answer;
		atomic_store_explicit(&p->hash, hash, memory_order_release);
	}
	sys_unlock(&keep_lock);
}
