/*
 * An injection is the environment, mounts and device nodes that make a container's processes belong to a claim's tenant. The
 * kubelet's Allocate reply and CDI specs are made from it. Making an injection creates no files for the container, so nothing
 * has to be undone. The library's directory is never changed (library_copy.h), so containers keep their library across
 * upgrades.
 *
 * The setting `container_driver` decides where the driver comes from. With "toolkit", NVIDIA's container toolkit adds it
 * (NVIDIA_VISIBLE_DEVICES), and /etc/ld.so.preload loads liballot.so. With a mirrored driver directory, there is no preload,
 * because its libraries include liballot.so; NVIDIA_VISIBLE_DEVICES is "void", so that an installed toolkit adds nothing. With
 * simulated cards, LD_LIBRARY_PATH leads to the simulated driver, whose socket is mounted.
 *
 * Main thread only. The caller owns the result.
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

struct injection_path {
	char *container_path, *host_path;
	bool is_read_only;
};

struct injection {
	struct injection_env *env;
	size_t env_count;
	struct injection_path *mount;
	size_t mount_count;
	struct injection_path *device; /* device nodes, for reading and writing but not mknod */
	size_t device_count;
};

/*
 * Makes a claim's injection. Free *ret with injection_free(). Returns -ENODEV if the claim has no tenant, -ENOENT if a part of
 * the installation is missing (err says which), or another -errno.
 */
int injection_make(struct claims *claims, const struct claim *claim, struct injection *ret,
		   struct error *err);
/*
 * Adds the device nodes of the tenant's cards, and those that every CUDA program needs, such as nvidiactl; skips missing ones.
 * `dev` is "/dev" except in tests. Returns 0 or -ENOMEM.
 */
int injection_add_nodes(struct injection *injection, const struct tenant_terms *terms,
			const char *dev, struct error *err);
/*
 * Returns the injection in the format of the reply to "claim" (docs/reference/protocol.md), which base/cdi/cdi_spec.h reads. A
 * new reference, or NULL if out of memory.
 */
json_t *injection_to_json(const struct injection *injection);
/* Frees the members and leaves *injection empty. */
void injection_free(struct injection *injection);

#define cleanup_injection cleanup(injection_free)
