/*
 * Sends a command to an MPS control daemon by NVIDIA's tool, without blocking: the event loop delivers the answer. Main
 * thread only.
 */
#pragma once

#include "daemon/space/mps_spawn.h"
#include "net/loop.h"

#define MPS_ANSWER_MAX 1024

struct mps_ask;

/*
 * `status`: the tool's exit status or -ETIMEDOUT. The ask is freed afterwards, without mps_ask_free(). May start another
 * ask.
 */
typedef void (*mps_answered)(void *data, int status, const char *text);

/* `spawn` selects the control daemon and the user; its descriptors are set here. The tool is killed after timeout_ns. */
int mps_ask(struct loop *loop, const struct mps_spawn *spawn, const char *command,
	    uint64_t timeout_ns, mps_answered answered, void *data, struct mps_ask **ret,
	    struct error *err);
/* Ends the tool without a callback. NULL is allowed; returns NULL. */
struct mps_ask *mps_ask_free(struct mps_ask *ask);
