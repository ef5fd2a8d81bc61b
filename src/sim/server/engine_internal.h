/* Shared by gpu_engine.c (cards and time) and engine_queue.c (streams and events). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct engine;
struct engine_card;
struct engine_proc;
struct engine_stream;

/* Completes all ops of proc that take no time, until the head of each stream takes time or waits. */
void engine_run_untimed_proc(struct engine *e, struct engine_proc *proc);
/* As engine_run_untimed_proc(), for all processes, until no more events happen. */
void engine_run_untimed(struct engine *e);
/* Removes the op at the head of s, completes its event, and gives its notice (HOST and SPIN gave theirs when they began). */
void engine_pop(struct engine *e, struct engine_stream *s, bool failed);
/* Gives the card to another process if the current one has no work. Call when a process has gained or lost work. */
void engine_reschedule(struct engine_card *card);
