/*
 * Sends one command to an MPS control daemon, by running NVIDIA's tool for that. Does not block:
 * the event loop delivers the answer. Main thread only.
 */
#pragma once

#include "daemon/space/mps_spawn.h"
#include "net/loop.h"

#define MPS_ANSWER_MAX 1024

struct mps_ask;

/*
 * Receives the tool's output. `status` is the tool's exit status or -ETIMEDOUT. The ask is freed
 * after this call, so do not call mps_ask_free(). The callback may start another ask.
 */
typedef void (*mps_answered)(void *data, int status, const char *text);

/*
 * Starts the tool with `command`. `spawn` says which control daemon it talks to and as which user
 * it runs; its descriptors are filled in here. The tool is killed after timeout_ns.
 */
int mps_ask(struct loop *loop, const struct mps_spawn *spawn, const char *command,
	    uint64_t timeout_ns, mps_answered answered, void *data, struct mps_ask **ret,
	    struct error *err);
/* Ends the tool without a callback. NULL is allowed; returns NULL. */
struct mps_ask *mps_ask_free(struct mps_ask *ask);
