/*
 * One command to a control daemon, by the tool that NVIDIA has for it, without waiting: the answer comes by the loop.
 * Main thread only.
 */
#pragma once

#include "daemon/space/spawn.h"
#include "net/loop.h"

#define MPS_ANSWER_MAX 1024

struct mps_ask;

/*
 * What it said; status: the tool's exit status, or -ETIMEDOUT. The ask is over: mps_ask_free() is not to be called, and
 * another may be begun here.
 */
typedef void (*mps_answered)(void *data, int status, const char *text);

/*
 * `spawn` says whom and as whom; its descriptors are filled in here. After timeout_ns the tool is ended.
 */
int mps_ask(struct loop *loop, const struct mps_spawn *spawn, const char *command,
	    uint64_t timeout_ns, mps_answered answered, void *data, struct mps_ask **ret,
	    struct error *err);
/* Ends the tool; nobody is told. NULL is fine; returns NULL. */
struct mps_ask *mps_ask_free(struct mps_ask *ask);
