#include "json_arena.h"

#include <jansson.h>
#include <sanitizer/asan_interface.h>

#include "fuzz.h"

#define ARENA_BYTES ((size_t)256 << 20) /* pages are taken as they are touched */
#define HEAD_BYTES 16                   /* a multiple of what any type is aligned to */

static _Alignas(HEAD_BYTES) unsigned char arena[ARENA_BYTES];
static size_t used, poisoned_to, pieces;

/* By the linker's --wrap: this code's own free() is given what json_dumps() made. */
void __real_free(void *p);
void __wrap_free(void *p);

static _Bool is_inside(const void *p)
{
	return (const unsigned char *)p >= arena && (const unsigned char *)p < arena + ARENA_BYTES;
}

/* Before each piece is its length, and between that and the piece what nobody may touch. */
static void *take(size_t bytes)
{
	const size_t whole = HEAD_BYTES + (bytes + HEAD_BYTES - 1) / HEAD_BYTES * HEAD_BYTES;
	if (bytes > ARENA_BYTES || whole > ARENA_BYTES - used)
		return NULL;
	unsigned char *head = arena + used;
	used += whole;
	if (used > poisoned_to) {
		__asan_poison_memory_region(arena + poisoned_to, used - poisoned_to);
		poisoned_to = used;
	}
	/* Every eighth byte begins a granule of the sanitizer's. */
	__asan_unpoison_memory_region(head, sizeof(bytes));
	memcpy(head, &bytes, sizeof(bytes));
	__asan_poison_memory_region(head + sizeof(bytes), HEAD_BYTES - sizeof(bytes));
	__asan_unpoison_memory_region(head + HEAD_BYTES, bytes);
	pieces++;
	return head + HEAD_BYTES;
}

static void give_back(void *p)
{
	unsigned char *piece = p;
	size_t bytes;
	if (!piece)
		return;
	/* Of no bytes there are none here: jansson asks for one at least. */
	FUZZ_CHECK(is_inside(piece) && !__asan_address_is_poisoned(piece));
	memcpy(&bytes, piece - HEAD_BYTES, sizeof(bytes));
	__asan_poison_memory_region(piece, bytes);
	pieces--;
}

void __wrap_free(void *p)
{
	if (is_inside(p))
		give_back(p);
	else
		__real_free(p);
}

void json_arena_begin(void)
{
	json_set_alloc_funcs(take, give_back);
	used = 0;
}

void json_arena_end(void)
{
	if (pieces)
		fprintf(stderr, "%zu pieces of JSON were not given back\n", pieces);
	FUZZ_CHECK(!pieces);
}
