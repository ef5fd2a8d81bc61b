#include "cli/trace/ring_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define NEEDED_SEALS (F_SEAL_SHRINK | F_SEAL_GROW)

int ring_reader_open(int fd, struct ring_reader *ret, struct error *err)
{
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);

	if (seals < 0 || (seals & NEEDED_SEALS) != NEEDED_SEALS || fstat(fd, &st) < 0 ||
	    st.st_size != (off_t)sizeof(struct trace_ring))
		return error_set(
			err, EPROTO,
			"the trace data has an unknown format: "
			"restart the traced process, so that it loads the installed version of "
			"liballot.so");
	void *at = mmap(NULL, sizeof(struct trace_ring), PROT_READ, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return error_set_errno(err, errno, "can't map the trace data");
	*ret = (struct ring_reader){ .ring = at };
	return 0;
}

void ring_reader_close(struct ring_reader *reader)
{
	if (reader->ring)
		munmap((void *)(uintptr_t)reader->ring, sizeof(*reader->ring));
	reader->ring = NULL;
}

static bool is_sound(const struct trace_event *e)
{
	return e->kind > 0 && e->kind < TRACE_KINDS && e->end >= e->begin;
}

size_t ring_reader_drain(struct ring_reader *r, uint64_t until_ticks, uint64_t now_ns, bool is_last,
			 ring_reader_event *event, void *data)
{
	uint64_t recorded = atomic_load_explicit(&r->ring->next, memory_order_acquire);
	uint64_t further = TRACE_EVENTS; /* events to try beyond ring->next, which may lag */
	size_t count = 0;

	if (recorded < r->done)
		recorded = r->done;
	if (recorded - r->done > TRACE_EVENTS) {
		r->lost += recorded - r->done - TRACE_EVENTS;
		r->done = recorded - TRACE_EVENTS;
	}
	while (r->done < UINT64_MAX) {
		struct trace_event e;
		uint64_t there;
		bool is_there = trace_ring_get(r->ring, r->done + 1, &e, &there);
		bool is_unfinished = !is_there && there <= r->done + 1;

		if (r->done >= recorded && (!is_there || !further--))
			break;
		bool is_too_new = is_there && is_sound(&e) && e.end > until_ticks;
		if ((is_unfinished || is_too_new) && !is_last) {
			if (!r->stalled_ns)
				r->stalled_ns = now_ns;
			if (now_ns - r->stalled_ns < RING_READER_PATIENCE_NS)
				break;
		}
		r->stalled_ns = 0;
		r->done++;
		if (is_there && is_sound(&e)) {
			event(data, &e);
			count++;
		} else if (!is_unfinished || !is_last) {
			r->lost++;
		}
	}
	return count;
}

bool ring_reader_name(struct ring_reader *r, struct trace_name *ret)
{
	uint32_t count = atomic_load_explicit(&r->ring->name_count, memory_order_relaxed);

	if (r->names_done >= count || r->names_done >= TRACE_NAMES)
		return false;
	const struct trace_name *n = &r->ring->name[r->names_done];
	if (!atomic_load_explicit(&n->is_written, memory_order_acquire))
		return false;
	*ret = *n;
	ret->text[TRACE_NAME_MAX - 1] = '\0';
	r->names_done++;
	return true;
}
