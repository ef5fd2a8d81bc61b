/*
 * The environment, mounts and device nodes that a container needs so that its processes belong to a claim's tenant. The
 * kubelet's Allocate reply and a CDI spec are both made from an injection.
 *
 * Making an injection creates no files for the container, so nothing has to be undone. The library is in a directory named by
 * its version and contents (library_copy.h), which is never changed. So containers keep the library they were started with,
 * also after upgrades.
 *
 * With setting `container_driver` = toolkit, NVIDIA's container toolkit provides the driver (NVIDIA_VISIBLE_DEVICES), and
 * /etc/ld.so.preload loads liballot.so. If the setting is the path of a mirrored driver directory, the driver comes from there.
 * Its libraries include liballot.so, so there is no preload, and NVIDIA_VISIBLE_DEVICES is "void" in case there is a toolkit.
 * For simulated cards, LD_LIBRARY_PATH leads to the simulated driver, and the simulation's socket is mounted.
 *
 * Main thread of the daemon only (it reads the claim). The caller owns the result.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "daemon/containers/claims/container_paths.h"

struct claim;
struct claims;
struct tenant_terms;

struct injection_env {
	char *name, *value;
};

struct injection_mount {
	char *container_path, *host_path;
	bool is_read_only;
};

/* A device node, for reading and writing but not mknod. */
struct injection_device {
	char *container_path, *host_path;
};

struct injection {
	struct injection_env *env;
	size_t env_count;
	struct injection_mount *mount;
	size_t mount_count;
	struct injection_device *device;
	size_t device_count;
};

/*
 * Makes the injection of a claim in force. Free *ret with injection_free(). Returns -ENODEV if the
 * claim is parked, -ENOENT if a part of this installation is missing or the library could not be
 * installed (the text says which), or -ENOMEM.
 */
int injection_make(struct claims *claims, const struct claim *claim, struct injection *ret,
		   struct error *err);
/*
 * Adds the device nodes of the tenant's cards and the common ones, if they exist. `dev` is "/dev",
 * except in tests. Returns 0 or -ENOMEM.
 */
int injection_add_nodes(struct injection *injection, const struct tenant_terms *terms,
			const char *dev, struct error *err);
/*
 * Converts the injection to JSON, as in the reply to the request "claim"
 * (docs/reference/protocol.md) and as base/cdi/cdi_spec.h reads it. Returns a new reference, or
 * NULL if out of memory.
 */
json_t *injection_to_json(const struct injection *injection);
/* Frees the members and leaves the injection empty. */
void injection_free(struct injection *injection);

#define cleanup_injection cleanup(injection_free)
