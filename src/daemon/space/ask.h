/*
 * Sends one command to a control daemon with NVIDIA's tool for that. Does not block: the event loop
 * delivers the answer. Main thread only.
 */
#pragma once

#include "daemon/space/spawn.h"
#include "net/loop.h"

#define MPS_ANSWER_MAX 1024

struct mps_ask;

/*
 * Receives the answer. `status` is the tool's exit status or -ETIMEDOUT. The ask is freed
 * afterwards, so do not call mps_ask_free(). The callback may start another ask.
 */
typedef void (*mps_answered)(void *data, int status, const char *text);

/*
 * `spawn` gives the control daemon and the user; its descriptors are filled in here. The tool is
 * killed after timeout_ns.
 */
int mps_ask(struct loop *loop, const struct mps_spawn *spawn, const char *command,
	    uint64_t timeout_ns, mps_answered answered, void *data, struct mps_ask **ret,
	    struct error *err);
/* Ends the tool without a callback. NULL is allowed; returns NULL. */
struct mps_ask *mps_ask_free(struct mps_ask *ask);
