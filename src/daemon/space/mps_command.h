/*
 * Sends a command to an MPS control daemon by NVIDIA's tool, without blocking: the event loop delivers the answer. Main
 * thread only.
 */
#pragma once

#include "daemon/space/mps_spawn.h"
#include "net/loop.h"

#define MPS_ANSWER_MAX 1024

struct mps_command;

/*
 * A callback: called with the tool's output once the tool has ended or was killed. `status` is the tool's exit status or
 * -ETIMEDOUT. The struct mps_command is already freed: do not call mps_command_free() for it. The callee may start another
 * command.
 */
typedef void (*mps_command_done)(void *data, int status, const char *text);

/*
 * Starts the tool, which sends `command`. `spawn` selects the control daemon and the user; its descriptors are set here. The
 * tool is killed after timeout_ns.
 */
int mps_command_start(struct loop *loop, const struct mps_spawn *spawn, const char *command,
		      uint64_t timeout_ns, mps_command_done done, void *data,
		      struct mps_command **ret, struct error *err);
/* Ends the tool without a callback. NULL is allowed; returns NULL. */
struct mps_command *mps_command_free(struct mps_command *command);
