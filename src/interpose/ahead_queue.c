#include "interpose/ahead_queue.h"

#include <string.h>
#include <sys/mman.h>

struct ahead_queue ahead_queue = { .wake_at = UINT64_MAX };

/* How many records of events are in it, by a hash of the event: libraries ask of events all the time. */
#define EVENT_COUNTS 1024
static uint32_t event_counts[EVENT_COUNTS];

static uint32_t *count_of(CUevent event)
{
	uint64_t h = (uint64_t)(uintptr_t)event * 0x9e3779b97f4a7c15ULL;

	return &event_counts[h >> 32 & (EVENT_COUNTS - 1)];
}

static bool is_of_event(const struct ahead_record *r)
{
	return r->kind == AHEAD_RECORD || r->kind == AHEAD_WAIT || r->kind == AHEAD_END;
}

bool ahead_queue_may_know(CUevent event)
{
	return *count_of(event) > 0;
}

bool ahead_queue_prepare(void)
{
	struct ahead_queue *q = &ahead_queue;

	if (q->ring)
		return true;
	void *ring = mmap(NULL, AHEAD_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);
	if (ring == MAP_FAILED)
		return false;
	q->ring = ring;
	return true;
}

/* What a record of so many bytes uses of the ring: the rest before the end too, if it is too short. */
static uint32_t span_of(uint32_t bytes)
{
	uint32_t rest = AHEAD_BYTES - ahead_queue.tail;

	return bytes <= rest ? bytes : bytes + rest;
}

bool ahead_queue_has_bytes(uint32_t bytes)
{
	return span_of(bytes) <= AHEAD_BYTES - ahead_queue.used_bytes;
}

struct ahead_record *ahead_queue_reserve(uint32_t bytes)
{
	struct ahead_queue *q = &ahead_queue;
	uint32_t rest = AHEAD_BYTES - q->tail;

	if (bytes > rest) {
		/* Its first fields are always there: records are multiples of 16. */
		struct ahead_record *skip = (struct ahead_record *)(void *)(q->ring + q->tail);
		skip->bytes = rest;
		skip->kind = AHEAD_SKIP;
		q->used_bytes += rest;
		q->tail = 0;
	}
	struct ahead_record *r = (struct ahead_record *)(void *)(q->ring + q->tail);
	r->bytes = bytes;
	return r;
}

void ahead_queue_push(struct ahead_record *r)
{
	struct ahead_queue *q = &ahead_queue;

	q->tail = (q->tail + r->bytes) % AHEAD_BYTES;
	q->used_bytes += r->bytes;
	q->ns += r->ns;
	q->pushed++;
	if (is_of_event(r))
		++*count_of(r->event);
}

struct ahead_record *ahead_queue_head(void)
{
	struct ahead_queue *q = &ahead_queue;

	if (q->handed == q->pushed)
		return NULL;
	struct ahead_record *r = (struct ahead_record *)(void *)(q->ring + q->head);
	if (r->kind == AHEAD_SKIP) {
		q->used_bytes -= r->bytes;
		q->head = 0;
		r = (struct ahead_record *)(void *)q->ring;
	}
	return r;
}

void ahead_queue_pop(struct ahead_record *r)
{
	struct ahead_queue *q = &ahead_queue;

	q->head = (q->head + r->bytes) % AHEAD_BYTES;
	q->used_bytes -= r->bytes;
	q->ns -= r->ns;
	q->handed++;
	if (is_of_event(r))
		--*count_of(r->event);
	if (q->handed == q->pushed)
		q->head = q->tail = q->used_bytes = 0;
}

/* Calls look() on each record until it says true. */
static bool find(bool (*look)(const struct ahead_record *, const void *), const void *what)
{
	struct ahead_queue *q = &ahead_queue;
	uint32_t at = q->head;

	for (uint64_t n = q->handed; n != q->pushed;) {
		const struct ahead_record *r = (const void *)(q->ring + at);
		at = (at + r->bytes) % AHEAD_BYTES;
		if (r->kind == AHEAD_SKIP)
			continue;
		if (look(r, what))
			return true;
		n++;
	}
	return false;
}

static bool is_record_of(const struct ahead_record *r, const void *event)
{
	return r->kind == AHEAD_RECORD && r->event == *(const CUevent *)event;
}

bool ahead_queue_records(CUevent event)
{
	return ahead_queue_may_know(event) && find(is_record_of, &event);
}

struct stream_of_context {
	CUstream stream;
	CUcontext context;
};

static bool is_on_stream(const struct ahead_record *r, const void *what)
{
	const struct stream_of_context *s = what;

	return r->stream == s->stream && (s->stream != CU_STREAM_LEGACY || r->context == s->context);
}

bool ahead_queue_uses(CUstream stream, CUcontext context)
{
	const struct stream_of_context what = { stream, context };

	return find(is_on_stream, &what);
}

void ahead_queue_reset(void)
{
	struct ahead_queue *q = &ahead_queue;
	unsigned char *ring = q->ring;
	bool is_off = atomic_load(&q->is_off);

	memset(q, 0, sizeof(*q));
	memset(event_counts, 0, sizeof(event_counts));
	q->ring = ring;
	atomic_store(&q->is_off, is_off);
	q->wake_at = UINT64_MAX;
}
