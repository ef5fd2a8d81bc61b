/* Between engine.c (cards and time) and engine_queue.c (streams and events). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct engine;
struct engine_card;
struct engine_proc;
struct engine_stream;

/* Everything that takes no time happens, until all heads of proc's streams take time or wait. */
void engine_settle_proc(struct engine *e, struct engine_proc *proc);
/* The same for all processes, over and over while an event happened. */
void engine_settle(struct engine *e);
/* The head of s is over: off the queue it goes, with its notice and event. */
void engine_pop(struct engine *e, struct engine_stream *s, bool failed);
/* proc's share of the card changed: who runs now? */
void engine_reschedule(struct engine_card *card);
