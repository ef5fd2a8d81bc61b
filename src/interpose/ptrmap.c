#include "interpose/ptrmap.h"

#include <string.h>
#include <sys/mman.h>

#include "interpose/sys.h"

#define SHARDS 64
#define FIRST_CAPACITY 64 /* a power of two, as all capacities */

/*
 * A holding in 32 bytes: one cache line, whichever place it is in. With 100,000 of them that line is
 * not in the cache, so what a removal costs is how many lines and pages it must touch; for the same
 * reason tables are filled to 13/16 before they grow. (40 bytes and half-filled tables: 3.3 times
 * what it costs with 100; so: 2.1 times.)
 */
struct place {
	_Alignas(32) uint64_t key;
	uint64_t bytes;
	uint64_t extra; /* the holding's owner or related: no kind has both */
	int32_t device;
	uint32_t kind; /* enum holding_kind */
};

struct shard {
	_Alignas(64) struct sys_lock lock;
	struct place *table;
	size_t capacity, count;
};

static struct shard shards[SHARDS];

static bool has_owner(uint32_t kind)
{
	return kind == HOLDING_MEMORY || kind == HOLDING_ARRAY;
}

static struct place pack(const struct holding *h)
{
	return (struct place){
		.key = h->key,
		.bytes = h->bytes,
		.extra = has_owner(h->kind) ? h->owner : h->related,
		.device = h->device,
		.kind = h->kind,
	};
}

static struct holding unpack(const struct place *p)
{
	return (struct holding){
		.key = p->key,
		.kind = (enum holding_kind)p->kind,
		.device = p->device,
		.bytes = p->bytes,
		.owner = has_owner(p->kind) ? p->extra : 0,
		.related = has_owner(p->kind) ? 0 : p->extra,
	};
}

static uint64_t mix(uint64_t key, uint32_t kind)
{
	uint64_t h = (key ^ ((uint64_t)kind << 56)) * 0x9e3779b97f4a7c15ULL;
	return h ^ (h >> 29);
}

static struct shard *shard_of(uint64_t hash)
{
	return &shards[hash >> 58];
}

/* The place that holds the key, or the empty one where it would go. */
static size_t find(const struct shard *s, uint64_t hash, uint32_t kind, uint64_t key)
{
	size_t i = hash & (s->capacity - 1);

	while (s->table[i].kind != HOLDING_NONE &&
	       (s->table[i].key != key || s->table[i].kind != kind))
		i = (i + 1) & (s->capacity - 1);
	return i;
}

static bool grow(struct shard *s)
{
	struct place *old = s->table;
	size_t old_capacity = s->capacity;
	size_t capacity = old_capacity ? old_capacity * 2 : FIRST_CAPACITY;
	void *memory = mmap(NULL, capacity * sizeof(*old), PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return false;
	s->table = memory;
	s->capacity = capacity;
	for (size_t i = 0; i < old_capacity; i++)
		if (old[i].kind != HOLDING_NONE)
			s->table[find(s, mix(old[i].key, old[i].kind), old[i].kind, old[i].key)] =
				old[i];
	if (old)
		munmap(old, old_capacity * sizeof(*old));
	return true;
}

bool ptrmap_insert(const struct holding *holding)
{
	uint64_t hash = mix(holding->key, holding->kind);
	struct shard *s = shard_of(hash);

	WITH_LOCK(&s->lock);
	if ((s->count + 1) * 16 > s->capacity * 13 && !grow(s))
		return false;
	size_t i = find(s, hash, holding->kind, holding->key);
	if (s->table[i].kind == HOLDING_NONE)
		s->count++;
	s->table[i] = pack(holding);
	return true;
}

/* Closes the gap at i by moving back what probed past it: no tombstones, so probes stay short. */
static void erase(struct shard *s, size_t i)
{
	size_t mask = s->capacity - 1;

	s->count--;
	for (size_t j = (i + 1) & mask; s->table[j].kind != HOLDING_NONE; j = (j + 1) & mask) {
		size_t home = mix(s->table[j].key, s->table[j].kind) & mask;
		if (((j - home) & mask) >= ((j - i) & mask)) {
			s->table[i] = s->table[j];
			i = j;
		}
	}
	s->table[i].kind = HOLDING_NONE;
}

bool ptrmap_remove(enum holding_kind kind, uint64_t key, struct holding *ret_holding)
{
	uint64_t hash = mix(key, kind);
	struct shard *s = shard_of(hash);

	WITH_LOCK(&s->lock);
	if (!s->capacity)
		return false;
	size_t i = find(s, hash, kind, key);
	if (s->table[i].kind == HOLDING_NONE)
		return false;
	*ret_holding = unpack(&s->table[i]);
	erase(s, i);
	return true;
}

bool ptrmap_find(enum holding_kind kind, uint64_t key, struct holding *ret_holding)
{
	uint64_t hash = mix(key, kind);
	struct shard *s = shard_of(hash);

	WITH_LOCK(&s->lock);
	if (!s->capacity)
		return false;
	size_t i = find(s, hash, kind, key);
	if (s->table[i].kind == HOLDING_NONE)
		return false;
	*ret_holding = unpack(&s->table[i]);
	return true;
}

bool ptrmap_update(const struct holding *holding)
{
	uint64_t hash = mix(holding->key, holding->kind);
	struct shard *s = shard_of(hash);

	WITH_LOCK(&s->lock);
	if (!s->capacity)
		return false;
	size_t i = find(s, hash, holding->kind, holding->key);
	if (s->table[i].kind == HOLDING_NONE)
		return false;
	s->table[i] = pack(holding);
	return true;
}

void ptrmap_remove_owned(uint64_t owner, void (*drop)(const struct holding *, void *), void *context)
{
	for (struct shard *s = shards; s < shards + SHARDS; s++) {
		WITH_LOCK(&s->lock);
		for (size_t i = 0; i < s->capacity;) {
			if (!has_owner(s->table[i].kind) || s->table[i].extra != owner) {
				i++;
				continue;
			}
			struct holding gone = unpack(&s->table[i]);
			erase(s, i); /* may move another here: look at i again */
			drop(&gone, context);
		}
	}
}

void ptrmap_reset(void)
{
	for (struct shard *s = shards; s < shards + SHARDS; s++) {
		if (s->table)
			munmap(s->table, s->capacity * sizeof(*s->table));
		memset(s, 0, sizeof(*s));
	}
}
