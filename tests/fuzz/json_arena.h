/*
 * Memory for jansson out of one piece that is taken again for each input: by malloc() and free() of the sanitizer, half of the
 * time of targets that are mostly JSON went there. What is free is poisoned and stays so until the input has ended, so that a
 * use of it is seen as it is otherwise; what is not given back by then is a leak, and seen at once. One thread.
 */
#pragma once

#ifdef ALLOT_FUZZ_JSON_ARENA
/* Before an input: jansson allocates from there. */
void json_arena_begin(void);

/* After it: all was given back, or it aborts and says how much was not. */
void json_arena_end(void);
#else /* replay.c: whatever checks its memory has each piece to itself */
static inline void json_arena_begin(void)
{
}

static inline void json_arena_end(void)
{
}
#endif
