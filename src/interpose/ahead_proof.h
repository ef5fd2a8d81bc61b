/*
 * What is known of handles, so that a call by them can be queued: a call of which it isn't known that it
 * succeeds is made at once, and its success is what proves it. Void when code or contexts go (guest.code_gone),
 * as their handles may be others' then, or when a function may be launched in fewer ways; of streams, when any
 * stream goes.
 *
 * Thread safe; lock-free but for layouts. Fixed tables: a newcomer takes an older one's place, which is
 * then proved anew.
 */
#ifndef ALLOT_INTERPOSE_AHEAD_PROOF_H
#define ALLOT_INTERPOSE_AHEAD_PROOF_H

#include "interpose/ahead_queue.h"

enum proof_kind { PROOF_KERNEL = 1, PROOF_STREAM, PROOF_RECORD, PROOF_WAIT };

/* Attributes of a launch that may be queued: none but how the kernel runs. */
bool proof_allows(const CUlaunchConfig *config);
/* A kernel's launch, all of it but for its parameters' values and its stream; config NULL or allowed. */
uint64_t proof_of_kernel(const struct ahead_kernel *kernel, CUcontext context);
/* A stream (context NULL), or an event in a context. */
uint64_t proof_of_handle(enum proof_kind kind, const void *handle, CUcontext context);

bool proof_is_there(uint64_t proof);
void proof_add(uint64_t proof);
void proof_remove(uint64_t proof);

/* In a forked child. */
void proof_reset(void);

/*
 * How the function's parameters lie: asked of the driver by proof_learn_layout() (a kernel that has run, and
 * has parameters), then told by proof_layout(). False: not known, or more than a record can have.
 */
void proof_learn_layout(CUfunction function);
bool proof_layout(CUfunction function, struct ahead_layout *ret_layout);

#endif
