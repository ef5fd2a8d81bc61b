/* Asks container engines for a container's name. Names are only displayed: no decision depends on an engine. */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "daemon/containers/engine/engine_reply.h"
#include "daemon/util/container.h"

#define ENGINES_MAX 16
#define ENGINE_PATH_MAX 108 /* size of a socket's path, with the NUL */

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
 * Parses the setting container_engines: "auto" (the usual sockets), "none", or a list like "docker:/run/docker.sock,...".
 * Returns -EINVAL for any other text; err then says what would be accepted. Pure.
 */
int engines_parse(const char *text, struct engines *ret, struct error *err);

/* Returns the engine's kind as in container.h: "docker" etc. */
const char *engine_kind_name(const struct engine *engine);
/* Returns false if the container cannot belong to this engine. Pure. */
bool engine_may_own(const struct engine *engine, const struct container *container);

/*
 * Asks the engine for the container's name and image. Gives up at end_ns (clock_now_ns()), or when stop_fd becomes readable.
 * Returns -ENOENT if the engine has no such container, another -errno if it cannot be reached, is too slow or its reply is
 * malformed. Thread safe.
 */
int engine_query(const struct engine *engine, const struct container *container, int stop_fd,
		 uint64_t end_ns, struct engine_name *ret);
