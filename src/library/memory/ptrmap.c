#include "library/memory/ptrmap.h"

#include <string.h>

#include "library/sys/sys.h"

#define SHARDS 64
#define FIRST_CAPACITY 64 /* a power of two, as all capacities */

/*
 * The cost of a removal depends on how many cache lines must be loaded. A program may hold 100,000 allocations of whole 2 MiB
 * pages, close together. So a chunk (512 pages of addresses) has one entry, with 16 bits per page: the number of pages of the
 * holding (ptrmap.h) that begins there. Every other holding is a single, with its own entry.
 */
#define STEP (2 * 1024 * 1024ULL)
#define CHUNK_STEPS 512ULL
#define CHUNK (CHUNK_STEPS * STEP)
/* The largest holding in a chunk, in pages. For few large holdings, chunks would waste memory. */
#define MAX_STEPS 8
#define SLAB_CHUNKS 16

/* Half a cache line, so that a lookup touches one line. */
struct place {
	_Alignas(32) uint64_t key;
	union {
		uint64_t bytes;
		uint16_t *steps; /* only in the entry of a chunk */
	};
	uint64_t extra; /* the holding's `owner` or `related`; no kind has both */
	int32_t device;
	uint16_t kind; /* enum holding_kind */
	/* In the entry of a chunk: number of its holdings. Never 0, because the entry is erased with the last one. */
	uint16_t live;
};

struct table {
	struct place *place;
	size_t capacity, count;
};

/* The page counts of one chunk. An allocation (slab) has SLAB_CHUNKS of these; the first is the slab's header. */
union steps {
	uint16_t step[CHUNK_STEPS];
	union steps *next; /* the next unused one; in a header, the next slab */
};

struct shard {
	_Alignas(64) struct sys_lock lock;
	/* Keyed by chunk_of(). A chunk's holdings have the same device and owner. */
	struct table chunks;
	struct table singles;
	union steps *spare, *slabs;
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
		.kind = (uint16_t)h->kind,
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

static bool is_in_chunk(enum holding_kind kind, uint64_t key)
{
	return kind == HOLDING_MEMORY && key % STEP == 0;
}

static uint64_t chunk_of(uint64_t key)
{
	return key & -CHUNK;
}

static size_t index_of(uint64_t key)
{
	return key / STEP % CHUNK_STEPS;
}

/* A key and its chunk have the same shard, whether or not the chunk exists. */
static struct shard *shard_of(enum holding_kind kind, uint64_t key)
{
	return &shards[mix(is_in_chunk(kind, key) ? chunk_of(key) : key, kind) >> 58];
}

/* The functions on a table need the shard's lock. */

/* Returns the place of the key, or the empty place for it. The table must not be empty. */
static size_t find(const struct table *t, uint32_t kind, uint64_t key)
{
	size_t i = mix(key, kind) & (t->capacity - 1);

	while (t->place[i].kind != HOLDING_NONE &&
	       (t->place[i].key != key || t->place[i].kind != kind))
		i = (i + 1) & (t->capacity - 1);
	return i;
}

static struct place *look_up(const struct table *t, uint32_t kind, uint64_t key)
{
	struct place *p = t->capacity ? &t->place[find(t, kind, key)] : NULL;

	return p && p->kind != HOLDING_NONE ? p : NULL;
}

/* A table is filled to 13/16, so that it takes few cache lines. */
static bool make_room(struct table *t)
{
	struct table old = *t, grown = {
		.capacity = old.capacity ? old.capacity * 2 : FIRST_CAPACITY,
		.count = old.count,
	};

	if ((old.count + 1) * 16 <= old.capacity * 13)
		return true;
	grown.place = sys_map(NULL, 0, grown.capacity * sizeof(*grown.place));
	if (!grown.place)
		return false;
	for (const struct place *p = old.place; p < old.place + old.capacity; p++)
		if (p->kind != HOLDING_NONE)
			grown.place[find(&grown, p->kind, p->key)] = *p;
	/* In this order: otherwise a child forked in between would unmap more bytes than the old table has. */
	t->place = grown.place;
	atomic_signal_fence(memory_order_seq_cst);
	t->capacity = grown.capacity;
	if (old.place)
		munmap(old.place, old.capacity * sizeof(*old.place));
	return true;
}

/* Adds or replaces the entry. Returns NULL if out of memory; replacing never fails. */
static struct place *put(struct table *t, const struct place *place)
{
	struct place *p = look_up(t, place->kind, place->key);

	if (!p) {
		if (!make_room(t))
			return NULL;
		p = &t->place[find(t, place->kind, place->key)];
		t->count++;
	}
	*p = *place;
	return p;
}

/* Moves later entries into the gap, because a tombstone there would make searches longer. */
static void erase(struct table *t, struct place *place)
{
	size_t mask = t->capacity - 1, i = (size_t)(place - t->place);

	t->count--;
	for (size_t j = (i + 1) & mask; t->place[j].kind != HOLDING_NONE; j = (j + 1) & mask) {
		size_t home = mix(t->place[j].key, t->place[j].kind) & mask;
		if (((j - home) & mask) >= ((j - i) & mask)) {
			t->place[i] = t->place[j];
			i = j;
		}
	}
	t->place[i].kind = HOLDING_NONE;
}

static bool is_regular(const struct holding *h)
{
	return is_in_chunk(h->kind, h->key) && h->bytes && h->bytes % STEP == 0 &&
	       h->bytes <= MAX_STEPS * STEP;
}

static bool make_spare(struct shard *s)
{
	if (s->spare)
		return true;
	union steps *slab = sys_map(NULL, 0, SLAB_CHUNKS * sizeof(*slab));
	if (!slab)
		return false;
	slab->next = s->slabs;
	s->slabs = slab;
	for (size_t i = 1; i < SLAB_CHUNKS; i++) {
		slab[i].next = s->spare;
		s->spare = &slab[i];
	}
	return true;
}

static void give_spare(struct shard *s, uint16_t *step)
{
	union steps *steps = (union steps *)(void *)step;

	steps->next = s->spare;
	s->spare = steps;
}

static struct place *new_chunk(struct shard *s, const struct holding *h)
{
	struct place chunk = pack(h);

	if (!make_spare(s))
		return NULL;
	chunk.key = chunk_of(h->key);
	chunk.steps = s->spare->step;
	struct place *p = put(&s->chunks, &chunk);
	if (p) {
		s->spare = s->spare->next;
		memset(p->steps, 0, sizeof(union steps));
	}
	return p;
}

/* Returns false if the holding must be a single: memory ran out, or the chunk belongs to another context. */
static bool put_regular(struct shard *s, const struct holding *h)
{
	struct place *p = look_up(&s->chunks, h->kind, chunk_of(h->key));
	size_t i = index_of(h->key);

	if (!p)
		p = new_chunk(s, h);
	if (!p || p->device != h->device || p->extra != h->owner)
		return false;
	p->live += !p->steps[i];
	p->steps[i] = (uint16_t)(h->bytes / STEP);
	return true;
}

static struct holding unpack_regular(const struct place *p, size_t i)
{
	struct holding h = unpack(p);

	h.key = p->key + i * STEP;
	h.bytes = p->steps[i] * STEP;
	return h;
}

static struct place *look_up_regular(const struct shard *s, enum holding_kind kind, uint64_t key)
{
	struct place *p = is_in_chunk(kind, key) ? look_up(&s->chunks, kind, chunk_of(key)) : NULL;

	return p && p->steps[index_of(key)] ? p : NULL;
}

static bool take_regular(struct shard *s, enum holding_kind kind, uint64_t key,
			 struct holding *ret_holding)
{
	struct place *p = look_up_regular(s, kind, key);

	if (!p)
		return false;
	size_t i = index_of(key);
	*ret_holding = unpack_regular(p, i);
	p->steps[i] = 0;
	if (--p->live == 0) {
		give_spare(s, p->steps);
		erase(&s->chunks, p);
	}
	return true;
}

static bool take_single(struct shard *s, enum holding_kind kind, uint64_t key,
			struct holding *ret_holding)
{
	struct place *p = look_up(&s->singles, kind, key);

	if (!p)
		return false;
	*ret_holding = unpack(p);
	erase(&s->singles, p);
	return true;
}

static bool find_any(const struct shard *s, enum holding_kind kind, uint64_t key,
		     struct holding *ret_holding)
{
	const struct place *p = look_up_regular(s, kind, key);

	if (p) {
		*ret_holding = unpack_regular(p, index_of(key));
		return true;
	}
	p = look_up(&s->singles, kind, key);
	if (p)
		*ret_holding = unpack(p);
	return p;
}

/* A holding is stored in a chunk or as a single. If an older entry of it was stored in the other way, removes that entry. */
static bool put_any(struct shard *s, const struct holding *h)
{
	struct place single = pack(h);
	struct holding old;

	if (is_regular(h) && put_regular(s, h)) {
		take_single(s, h->kind, h->key, &old);
		return true;
	}
	if (!put(&s->singles, &single))
		return false;
	take_regular(s, h->kind, h->key, &old);
	return true;
}

bool ptrmap_insert(const struct holding *holding)
{
	struct shard *s = shard_of(holding->kind, holding->key);

	WITH_LOCK(&s->lock);
	return put_any(s, holding);
}

bool ptrmap_remove(enum holding_kind kind, uint64_t key, struct holding *ret_holding)
{
	struct shard *s = shard_of(kind, key);

	WITH_LOCK(&s->lock);
	return take_regular(s, kind, key, ret_holding) || take_single(s, kind, key, ret_holding);
}

bool ptrmap_find(enum holding_kind kind, uint64_t key, struct holding *ret_holding)
{
	struct shard *s = shard_of(kind, key);

	WITH_LOCK(&s->lock);
	return find_any(s, kind, key, ret_holding);
}

bool ptrmap_update(const struct holding *holding)
{
	struct shard *s = shard_of(holding->kind, holding->key);
	struct holding old;

	WITH_LOCK(&s->lock);
	return find_any(s, holding->kind, holding->key, &old) && put_any(s, holding);
}

static bool is_owned(const struct place *p, uint64_t owner)
{
	return has_owner(p->kind) && p->extra == owner;
}

static void remove_owned_chunks(struct shard *s, uint64_t owner,
				void (*drop)(const struct holding *, void *), void *context)
{
	for (size_t i = 0; i < s->chunks.capacity;) {
		struct place *p = &s->chunks.place[i];
		if (!is_owned(p, owner)) {
			i++;
			continue;
		}
		struct place chunk = *p;
		/* Erasing may move another entry to place i, so check it again. */
		erase(&s->chunks, p);
		for (size_t step = 0; step < CHUNK_STEPS; step++)
			if (chunk.steps[step]) {
				struct holding gone = unpack_regular(&chunk, step);
				drop(&gone, context);
			}
		give_spare(s, chunk.steps);
	}
}

static void remove_owned_singles(struct shard *s, uint64_t owner,
				 void (*drop)(const struct holding *, void *), void *context)
{
	for (size_t i = 0; i < s->singles.capacity;) {
		struct place *p = &s->singles.place[i];
		if (!is_owned(p, owner)) {
			i++;
			continue;
		}
		struct holding gone = unpack(p);
		erase(&s->singles, p);
		drop(&gone, context);
	}
}

void ptrmap_remove_owned(uint64_t owner, void (*drop)(const struct holding *, void *), void *context)
{
	for (struct shard *s = shards; s < shards + SHARDS; s++) {
		WITH_LOCK(&s->lock);
		remove_owned_chunks(s, owner, drop, context);
		remove_owned_singles(s, owner, drop, context);
	}
}

static void unmap_table(struct table *t)
{
	if (t->place)
		munmap(t->place, t->capacity * sizeof(*t->place));
}

void ptrmap_reset(void)
{
	for (struct shard *s = shards; s < shards + SHARDS; s++) {
		unmap_table(&s->chunks);
		unmap_table(&s->singles);
		for (union steps *slab = s->slabs, *next; slab; slab = next) {
			next = slab->next;
			munmap(slab, SLAB_CHUNKS * sizeof(*slab));
		}
		memset(s, 0, sizeof(*s));
	}
}
