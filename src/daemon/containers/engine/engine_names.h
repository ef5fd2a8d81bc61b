/*
 * Finds containers' names by asking container engines (docker, containerd, ...). A thread asks, so the main thread does not
 * wait. An engine that does not answer is asked less and less often.
 *
 *     main:   engine_names_request()   one question per container
 *     thread: asks each engine that may have the container, one after the other
 *     main:   answer()                 delivers the result, from the event loop
 */
#pragma once

#include <stdint.h>

#include "daemon/containers/engine/engine.h"
#include "net/loop.h"

#define ENGINE_ASK_NS UINT64_C(2000000000) /* longest wait for one answer */
/*
 * Delay before a failing engine is asked again, and before all engines are asked again for a name that none of them knew.
 * Doubles with each failure in a row, up to the maximum.
 */
#define ENGINE_AGAIN_NS UINT64_C(1000000000)
#define ENGINE_AGAIN_MOST_NS UINT64_C(60000000000)
/* most unanswered questions; engine_names_request() refuses more */
#define ENGINE_QUESTIONS_MAX 256

struct engine_names;

/* Called in the main thread. `name` is NULL if no engine knows the container now. */
typedef void (*engine_names_answer)(void *data, const char *id, const struct engine_name *name);

/* Starts the thread. Without engines, *ret is NULL and the functions below do nothing. */
int engine_names_start(struct loop *loop, const struct engines *engines, engine_names_answer answer,
		       void *data, struct engine_names **ret, struct error *err);
/* Cancels the current question and stops the thread. NULL is allowed; returns NULL. */
struct engine_names *engine_names_stop(struct engine_names *names);

/*
 * Queues a question for the container's name; answer() gets the result. Returns false, and never calls answer(), if the queue
 * is full or there is no engine. Main thread only.
 */
bool engine_names_request(struct engine_names *names, const struct container *container);

uint64_t engine_names_retry_ns(unsigned failures);
