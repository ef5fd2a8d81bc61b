/*
 * Container engines, by their sockets: which there may be, and asking one for the name of a container. Names
 * are for people alone: nothing that the daemon decides depends on an engine.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "daemon/containers/engine/engine_reply.h"
#include "daemon/util/container.h"

#define ENGINES_MAX 16
#define ENGINE_PATH_MAX 108 /* of a socket */

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
 * "auto": where engines have their sockets; "none"; or a list, by commas, "docker:/run/docker.sock,...".
 * -EINVAL with what would be right. Pure.
 */
int engines_parse(const char *text, struct engines *ret, struct error *err);

/* "docker", ... as container.h has them. */
const char *engine_kind_name(const struct engine *engine);
/* May this container be of that engine? Pure. */
bool engine_may_have(const struct engine *engine, const struct container *container);

/*
 * Asks; over at end_ns, or when stop_fd is readable. -ENOENT: it has no such container; else the socket can't
 * be used. Any thread.
 */
int engine_ask(const struct engine *engine, const struct container *container, int stop_fd,
	       uint64_t end_ns, struct engine_name *ret);
