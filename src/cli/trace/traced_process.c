#include "cli/trace/traced_process.h"

#include <inttypes.h>
#include <stdio.h>

#define SORT_OF_PROCESSES 100 /* a process's track comes after the tenant's and the GPUs' */
#define LEGACY_STREAM 1       /* CU_STREAM_LEGACY */
#define PER_THREAD_STREAM 2   /* CU_STREAM_PER_THREAD */
#define LEARNS_SLOWLY 64

struct writing {
	struct traced_process *process;
	const struct trace_scene *scene;
	uint64_t untimed_ns; /* length to draw for a kernel that was not timed */
};

void traced_process_begin(struct traced_process *p, struct out *out)
{
	out_name(out, "process_name", p->pid, 0, *p->command ? p->command : "process");
	out_sort_index(out, "process_sort_index", p->pid, 0, SORT_OF_PROCESSES);
}

/* Returns when the event began, but not before the trace began. */
static uint64_t begin_ns(const struct trace_scene *s, const struct trace_event *e)
{
	int64_t ns = tick_map_ns(s->map, e->begin);

	return ns > 0 ? (uint64_t)ns : 0;
}

/* A kernel of unknown length is drawn untimed_ns (struct writing) long. */
static bool is_untimed(const struct trace_event *e)
{
	return e->kind == TRACE_KERNEL && e->end == e->begin;
}

/* Keeps the duration of the shortest recent launch. A longer launch raises it only a little. */
static void learn_launch(struct traced_process *p, uint64_t ns)
{
	if (!p->launch_ns || ns < p->launch_ns)
		p->launch_ns = ns;
	else
		p->launch_ns += (ns - p->launch_ns) / LEARNS_SLOWLY;
}

static uint64_t duration_ns(const struct writing *w, const struct trace_event *e, uint64_t from)
{
	int64_t to = tick_map_ns(w->scene->map, e->end);
	uint64_t ns = to > (int64_t)from ? (uint64_t)to - from : 0;

	if (is_untimed(e))
		return w->untimed_ns;
	if (e->kind == TRACE_KERNEL && !(e->flags & TRACE_LEASED))
		learn_launch(w->process, ns);
	return ns;
}

static void begin(const struct writing *w, const struct trace_event *e, char phase,
		  const char *category, const char *name)
{
	uint64_t from = begin_ns(w->scene, e);

	out_event(w->scene->out, phase, category, w->process->pid, e->thread, from, name);
	if (phase == 'X')
		out_duration(w->scene->out, duration_ns(w, e, from));
	out_args(w->scene->out);
}

static void put_device(const struct writing *w, const struct trace_event *e)
{
	if (e->device < w->scene->device_count)
		out_whole(w->scene->out, "gpu", w->scene->device[e->device]);
}

static void put_stream(const struct writing *w, const struct trace_event *e)
{
	struct out *out = w->scene->out;
	uint32_t number;

	if (e->object == PER_THREAD_STREAM || (e->flags & TRACE_PER_THREAD)) {
		out_text(out, "stream", "per-thread");
	} else if (!e->object || e->object == LEGACY_STREAM) {
		out_text(out, "stream", "default");
	} else {
		number = names_stream_number(&w->process->names, e->object);
		if (number)
			out_whole(out, "stream", number);
		else
			out_hex(out, "stream", e->object);
	}
}

static void write_work(const struct writing *w, const struct trace_event *e)
{
	static const char *const categories[] = {
		[TRACE_KERNEL] = "launch",
		[TRACE_GRAPH] = "graph",
		[TRACE_COPY] = "copy",
		[TRACE_SYNC] = "copy",
	};
	struct out *out = w->scene->out;
	char number[32];
	const char *name = e->kind == TRACE_GRAPH ? "graph" : NULL;

	if (!name)
		name = names_find(&w->process->names,
				  e->kind == TRACE_KERNEL ? TRACE_NAMES_FUNCTION : TRACE_NAMES_ENTRY,
				  e->subject, e->begin);
	if (!name) {
		snprintf(number, sizeof(number), "kernel 0x%" PRIx64, e->subject);
		name = e->kind == TRACE_KERNEL ? number : "copy";
	}
	begin(w, e, 'X', categories[e->kind], name);
	put_device(w, e);
	if (e->kind != TRACE_SYNC)
		put_stream(w, e);
	if (e->kind == TRACE_KERNEL) {
		out_whole(out, "blocks", e->amount);
		out_whole(out, "threads", e->extra);
	} else if (e->kind == TRACE_GRAPH) {
		out_hex(out, "graph", e->subject);
	} else {
		out_whole(out, "bytes", e->amount);
	}
	if (is_untimed(e))
		out_bool(out, "untimed", true);
	if (e->flags & TRACE_LEASED)
		out_bool(out, "leased", true);
	if (e->code)
		out_whole(out, "error", e->code);
	out_event_end(out);
	w->scene->sums->work++;
	w->scene->sums->launches += e->kind == TRACE_KERNEL || e->kind == TRACE_GRAPH;
}

/* `reasons` is a bit mask of TRACE_WAIT_...; returns the name of the most important one. */
static const char *name_of_wait(uint64_t reasons)
{
	if (reasons & TRACE_WAIT_LEASE)
		return "wait: lease";
	if (reasons & TRACE_WAIT_TURN)
		return "wait: turn";
	if (reasons & TRACE_WAIT_GRANT)
		return "wait: grant";
	if (reasons & TRACE_WAIT_CAP)
		return "wait: cap";
	return "wait: own work";
}

static void write_wait(const struct writing *w, const struct trace_event *e)
{
	struct out *out = w->scene->out;

	if (e->kind == TRACE_GATE_WAIT) {
		begin(w, e, 'X', "wait", name_of_wait(e->amount));
		w->scene->sums->gate_waits++;
	} else {
		begin(w, e, 'X', "wait",
		      e->kind == TRACE_AWAY_WAIT ? "wait: swapped" : "wait: memory");
		w->scene->sums->memory_waits += e->kind == TRACE_MEMORY_WAIT;
	}
	put_device(w, e);
	if (e->kind == TRACE_MEMORY_WAIT) {
		out_whole(out, "bytes", e->amount);
		out_bool(out, "granted", !e->code);
	}
	out_event_end(out);
}

static void write_memory(const struct writing *w, const struct trace_event *e)
{
	struct trace_sums *sums = w->scene->sums;
	const char *name = e->kind == TRACE_ALLOC  ? "allocate"
			   : e->kind == TRACE_FREE ? "free"
						   : "allocation denied";

	begin(w, e, 'i', "memory", name);
	put_device(w, e);
	if (e->device >= w->scene->device_count)
		out_text(w->scene->out, "of", "host");
	if (e->amount)
		out_whole(w->scene->out, "bytes", e->amount);
	if (e->subject)
		out_hex(w->scene->out, "address", e->subject);
	out_event_end(w->scene->out);
	sums->allocations += e->kind == TRACE_ALLOC;
	sums->frees += e->kind == TRACE_FREE;
	sums->denied += e->kind == TRACE_DENIED;
}

static void write_used(const struct writing *w, const struct trace_event *e)
{
	char name[48] = "page-locked memory";

	if (e->device < w->scene->device_count)
		snprintf(name, sizeof(name), "memory, GPU %u", w->scene->device[e->device]);
	begin(w, e, 'C', "memory", name);
	out_whole(w->scene->out, "bytes", e->amount);
	out_event_end(w->scene->out);
}

static void write_move(const struct writing *w, const struct trace_event *e)
{
	begin(w, e, 'X', "swap", e->kind == TRACE_SWAP_OUT ? "swap out" : "swap in");
	out_whole(w->scene->out, "bytes", e->amount);
	out_bool(w->scene->out, "moved", !e->code);
	out_event_end(w->scene->out);
}

/* Writes the kernel `held`, an element of traced_process.held, at most most_ns long; empties the element. */
static void flush_held_kernel(const struct writing *w, struct trace_event *held, uint64_t most_ns)
{
	struct writing own = *w;

	if (!held->kind)
		return;
	own.untimed_ns = w->process->launch_ns < most_ns ? w->process->launch_ns : most_ns;
	write_work(&own, held);
	held->kind = 0;
}

/*
 * Returns the longest time that the kernel `held` can have lasted: until `next`, its thread's next event, begins, or until
 * `next` ends if `next` encloses the kernel. UINT64_MAX if `next` is another thread's event.
 */
static uint64_t max_duration_ns(const struct writing *w, const struct trace_event *held,
				const struct trace_event *next)
{
	uint64_t ticks = next->begin > held->begin ? next->begin : next->end;
	int64_t ns = tick_map_ns(w->scene->map, ticks) - tick_map_ns(w->scene->map, held->begin);

	if (next->thread != held->thread)
		return UINT64_MAX;
	return ns > 0 ? (uint64_t)ns : 0;
}

static void write_event(void *data, const struct trace_event *e)
{
	const struct writing *w = data;
	struct trace_event *held = &w->process->held[e->thread % PROCESS_HELD];

	/* Threads share the elements of `held`. Write another thread's kernel early only if the new event needs the element. */
	if (held->kind && (held->thread == e->thread || is_untimed(e)))
		flush_held_kernel(w, held, max_duration_ns(w, held, e));
	if (begin_ns(w->scene, e) > w->scene->end_ns || tick_map_ns(w->scene->map, e->end) < 0)
		return;
	if (is_untimed(e)) {
		*held = *e;
		return;
	}
	switch ((enum trace_kind)e->kind) {
	case TRACE_KERNEL:
	case TRACE_GRAPH:
	case TRACE_COPY:
	case TRACE_SYNC: write_work(w, e); break;
	case TRACE_GATE_WAIT:
	case TRACE_MEMORY_WAIT:
	case TRACE_AWAY_WAIT: write_wait(w, e); break;
	case TRACE_ALLOC:
	case TRACE_FREE:
	case TRACE_DENIED: write_memory(w, e); break;
	case TRACE_USED: write_used(w, e); break;
	case TRACE_SWAP_OUT:
	case TRACE_SWAP_IN: write_move(w, e); break;
	case TRACE_KINDS: break;
	}
}

static int take_names(struct traced_process *p, struct out *out)
{
	struct trace_name name;

	while (ring_reader_name(&p->reader, &name)) {
		if (name.kind == TRACE_NAMES_THREAD)
			out_name(out, "thread_name", p->pid, (int64_t)name.key, name.text);
		int r = names_add(&p->names, &name);
		if (r < 0)
			return r;
	}
	return 0;
}

int traced_process_write(struct traced_process *p, const struct trace_scene *scene, uint64_t now_ns,
			 bool is_last)
{
	struct writing w = { .process = p, .scene = scene };
	uint64_t lost = p->reader.lost;
	int r = take_names(p, scene->out);

	if (r < 0)
		return r;
	/* Do not deliver events after the map's last pair of clock readings yet: only the next pair tells their exact times. */
	ring_reader_drain(&p->reader, tick_map_last_ticks(scene->map), now_ns, is_last, write_event,
			  &w);
	for (size_t i = 0; is_last && i < PROCESS_HELD; i++)
		flush_held_kernel(&w, &p->held[i], UINT64_MAX);
	scene->sums->lost += p->reader.lost - lost;
	return 0;
}

void traced_process_end(struct traced_process *p)
{
	ring_reader_close(&p->reader);
	names_clear(&p->names);
}
