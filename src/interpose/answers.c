#include "interpose/answers.h"

#include <string.h>

#include "interpose/sys.h"

#define PLACES 2048 /* a power of two; a CUDA runtime asks for some 500 names */
#define MOST (PLACES * 3 / 4)
#define ARENA_BYTES (96 << 10)
#define NAME_MAX_LENGTH 255

struct entry {
	const void *asked;
	void *pfn;
	int32_t version;
	uint16_t result, flags;
	uint8_t status, length;
	char name[]; /* without a NUL */
};

/*
 * Where an entry is in the arena, plus 1 (0: empty place), beneath the upper half of its hash. The entries
 * lie close, one after the other: each page that is touched for the first time costs as much as a look-up.
 */
static _Atomic uint64_t places[PLACES];
static _Alignas(8) char arena[ARENA_BYTES];
static struct sys_lock keep_lock;
static uint32_t kept, arena_used;

static uint64_t load64(const char *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

/* Eight characters at a time; the last eight may overlap others. Once for a question. */
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

static bool is_same(const struct entry *e, const struct question *q)
{
	return e->asked == q->asked && e->version == q->version && e->flags == q->flags &&
	       e->length == q->length && memcmp(e->name, q->name, e->length) == 0;
}

static struct entry *entry_at(uint32_t offset)
{
	return (struct entry *)(void *)(arena + offset);
}

/* Its entry; or NULL, and the place where it would go. */
static const struct entry *find(struct question *q, size_t *ret_place)
{
	uint64_t hash = hash_of(q);

	for (size_t i = hash;; i++) {
		uint64_t there = atomic_load_explicit(&places[i & (PLACES - 1)],
						      memory_order_acquire);
		*ret_place = i & (PLACES - 1);
		if (!there)
			return NULL;
		const struct entry *e = entry_at((uint32_t)there - 1);
		if (there >> 32 == hash >> 32 && is_same(e, q))
			return e;
	}
}

bool answers_find(struct question *question, struct answer *ret_answer)
{
	size_t place;
	const struct entry *e = find(question, &place);

	if (!e)
		return false;
	*ret_answer = (struct answer){
		.pfn = e->pfn,
		.result = (CUresult)e->result,
		.status = (CUdriverProcAddressQueryResult)e->status,
	};
	return true;
}

/* An entry of its own, or NULL: no room, or a value that none has room for. Holds keep_lock. */
static struct entry *new_entry(const struct question *q, const struct answer *a)
{
	struct entry *e = entry_at(arena_used);
	size_t bytes = (sizeof(*e) + q->length + 7) & ~(size_t)7;

	if (kept == MOST || q->length > NAME_MAX_LENGTH || bytes > ARENA_BYTES - arena_used ||
	    q->flags > UINT16_MAX || (unsigned)a->result > UINT16_MAX ||
	    (unsigned)a->status > UINT8_MAX)
		return NULL;
	kept++;
	arena_used += (uint32_t)bytes;
	return e;
}

void answers_keep(struct question *question, const struct answer *answer)
{
	size_t place;

	if (!sys_trylock(&keep_lock))
		return;
	const struct entry *same = find(question, &place);
	struct entry *e = same ? NULL : new_entry(question, answer);
	if (e) {
		*e = (struct entry){
			.asked = question->asked,
			.pfn = answer->pfn,
			.version = question->version,
			.result = (uint16_t)answer->result,
			.flags = (uint16_t)question->flags,
			.status = (uint8_t)answer->status,
			.length = (uint8_t)question->length,
		};
		memcpy(e->name, question->name, question->length);
		atomic_store_explicit(&places[place],
				      (question->hash >> 32) << 32 |
					      (uint32_t)((char *)e - arena + 1),
				      memory_order_release);
	}
	sys_unlock(&keep_lock);
}
