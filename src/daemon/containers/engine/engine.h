/*
 * Container engines: reads the list of engines and their sockets, and asks an engine for a
 * container's name. Names are only for display: no decision of the daemon depends on an engine.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "daemon/containers/engine/engine_reply.h"
#include "daemon/util/container.h"

#define ENGINES_MAX 16
#define ENGINE_PATH_MAX 108 /* longest path of a socket */

struct engine_kind;

struct engine {
	const struct engine_kind *kind;
	char path[ENGINE_PATH_MAX];
};

struct engines {
	unsigned count;
	struct engine item[ENGINES_MAX];
};

/*
 * Reads "auto" (the engines' usual sockets), "none", or a comma-separated list
 * "docker:/run/docker.sock,...". Returns -EINVAL with what would be accepted. Pure.
 */
int engines_parse(const char *text, struct engines *ret, struct error *err);

/* Returns the name of the engine's kind, as in container.h: "docker" etc. */
const char *engine_kind_name(const struct engine *engine);
/* Returns true if the container may belong to this engine, so that asking the engine makes sense. Pure. */
bool engine_may_have(const struct engine *engine, const struct container *container);

/*
 * Asks the engine for the container's name, until end_ns or until stop_fd is readable. Returns
 * -ENOENT if it has no such container, another -errno if its socket cannot be used. Any thread.
 */
int engine_ask(const struct engine *engine, const struct container *container, int stop_fd,
	       uint64_t end_ns, struct engine_name *ret);
