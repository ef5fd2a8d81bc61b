#include "library/sys/config.h"

#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "library/sys/log.h"
#include "library/sys/sys.h"

/*
 * The tenant's directory in a container (daemon/containers/claims/injection.h). A process that sees it belongs to that tenant,
 * whatever its environment says. A container engine's exec does not pass the environment on, and the user can set any value in
 * it.
 */
#define CONTAINER_DIR "/run/allot/tenant"

static char socket_path[sizeof(((struct sockaddr_un *)0)->sun_path)];
static bool is_unusable, passes_unknown;
static _Atomic bool loaded;

/* Runs at load, or earlier if a program's constructor needs it. Needs only libc, which starts before every preloaded library. */
__attribute__((constructor)) static void load(void)
{
	if (atomic_load_explicit(&loaded, memory_order_acquire))
		return;
	const char *path = getenv("ALLOT_SOCKET"), *unknown = getenv("ALLOT_UNKNOWN");

	/* The socket may be missing for a moment while a daemon starts, so look for the directory. */
	if (access(CONTAINER_DIR, F_OK) == 0)
		path = CONTAINER_DIR "/allot.sock";
	log_open(getenv("ALLOT_LOG"));
	passes_unknown = unknown && strcmp(unknown, "pass") == 0;
	is_unusable = path && strlen(path) >= sizeof(socket_path);
	if (path && !is_unusable)
		strcpy(socket_path, path);
	else if (path)
		log_refusal("ALLOT_SOCKET: the path has %zu bytes, but a socket's path may have at "
			    "most %zu; use a shorter directory",
			    strlen(path), sizeof(socket_path) - 1);
	atomic_store_explicit(&loaded, true, memory_order_release);
}

const char *config_socket(void)
{
	load();
	return socket_path;
}

bool config_is_unusable(void)
{
	load();
	return is_unusable;
}

bool config_passes_unknown(void)
{
	load();
	return passes_unknown;
}
