/*
 * Names of containers, asked for in a thread of its own: the daemon never waits for an engine, and one that
 * does not answer is asked more and more seldom.
 *
 *     main:   engine_names_ask()     a question a container
 *     thread: asks each engine that may have it, one after the other
 *     main:   answer()               what came of it, from the loop
 */
#pragma once

#include <stdint.h>

#include "daemon/containers/engine/engine.h"
#include "net/loop.h"

#define ENGINE_ASK_NS UINT64_C(2000000000) /* an engine may take so long for one answer */
/* What nobody knows is asked again after this long, doubled each time, up to ... */
#define ENGINE_AGAIN_NS UINT64_C(1000000000)
#define ENGINE_AGAIN_MOST_NS UINT64_C(60000000000)
#define ENGINE_QUESTIONS_MAX 256 /* that wait */

struct engine_names;

/* `name` is NULL where no engine knows it now. In the main thread. */
typedef void (*engine_names_answer)(void *data, const char *id, const struct engine_name *name);

/* Without engines *ret is NULL, and all below does nothing. */
int engine_names_start(struct loop *loop, const struct engines *engines, engine_names_answer answer,
		       void *data, struct engine_names **ret, struct error *err);
/* Ends what is being asked at once. NULL is fine; returns NULL. */
struct engine_names *engine_names_stop(struct engine_names *names);

/* False: too many wait, or there is nobody to ask; then answer() is not called. Main thread only. */
bool engine_names_ask(struct engine_names *names, const struct container *container);

/* When to ask again after `failures` answers of "unknown" in a row, from then on. Pure. */
uint64_t engine_names_again_ns(unsigned failures);
