/* An engine (gpu_engine.h) with one card for each test, and a record of the notices that the engine has given. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sim/server/gpu_engine.h"

#define US 1000ull
#define MS 1000000ull
#define SLICE (2090 * US)
#define GAP (190 * US)
#define SWITCH (155 * US)

#define SEEN_MOST 4096

static inline bool engine_work_on(struct engine *e, struct engine_stream *s, uint64_t ns,
				  uint32_t launches, uint32_t part)
{
	return engine_work(e, s, ns, launches, part, SIM_WAY_NONE);
}

/* Submits a kernel that takes the whole card and, if `notice` is set, gives a notice when it is done. */
static inline void noticed_work(struct engine *e, struct engine_stream *s, uint64_t ns,
				uint32_t launches, bool notice, uint64_t cookie)
{
	engine_work_on(e, s, ns, launches, ENGINE_ALL);
	if (notice)
		engine_mark(e, s, cookie);
}

struct seen {
	int n;
	uint64_t cookies[SEEN_MOST];
	uint64_t at_ns[SEEN_MOST];
	bool failed[SEEN_MOST];
	int events;
	struct engine *engine;
};

static void on_notice(void *arg, struct engine_stream *stream, struct engine_op *op, bool failed)
{
	struct seen *seen = arg;

	assert_true(seen->n < SEEN_MOST);
	seen->cookies[seen->n] = op->cookie;
	seen->at_ns[seen->n] = seen->engine->now_ns;
	seen->failed[seen->n++] = failed;
}

static void on_event(void *arg, struct engine_event *event)
{
	((struct seen *)arg)->events++;
}

struct fixture {
	struct engine engine;
	struct seen seen;
	struct engine_card *card;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	engine_init(&f->engine, 0, (struct engine_hooks){ on_notice, on_event, &f->seen });
	f->seen.engine = &f->engine;
	f->card = engine_add_card(&f->engine, SLICE, GAP, SWITCH);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	engine_fini(&f->engine);
	free(f);
	return 0;
}

static inline struct engine_stream *tenant(struct fixture *f, struct engine_proc **ret_proc)
{
	struct engine_proc *proc = engine_proc_new(&f->engine, f->card, NULL);
	struct engine_stream *s = engine_stream_new(proc, 1, SIM_STREAM_NONBLOCKING);

	if (ret_proc)
		*ret_proc = proc;
	return s;
}
