/*
 * What a container needs so that its processes are in a claim's tenant: environment, mounts, device
 * nodes. The same for the kubelet's answer to Allocate and for a CDI spec; both only translate it.
 *
 * Nothing of it is made here, and nothing has to be undone: the library stands in a directory named by its
 * version and contents (library.h), which nobody writes to again, so that containers go on with what
 * they were started with over any upgrade.
 *
 * With `container_driver` = toolkit (a setting) NVIDIA's container toolkit brings the driver, told by
 * NVIDIA_VISIBLE_DEVICES; liballot.so comes by /etc/ld.so.preload. With the path of a mirrored directory
 * the driver comes from there, with liballot.so in front and no preload; NVIDIA_VISIBLE_DEVICES says
 * "void", for a toolkit that is there all the same. Simulated: the simulated driver's directory, by
 * LD_LIBRARY_PATH, and the card's socket.
 *
 * Main thread of the daemon only (it reads the claim); what is made belongs to the caller.
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

/* A device node; read and write, no mknod. */
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
 * For a claim in force. *ret is the caller's: injection_free(). -ENODEV: the claim is parked; -ENOENT: a part of
 * this installation is missing, or the library could not be put in its place (the text says which);
 * -ENOMEM.
 */
int injection_make(struct claims *claims, const struct claim *claim, struct injection *ret,
		   struct error *err);
/*
 * Adds the cards' device nodes and those of all cards, as far as they are there; dev: "/dev", elsewhere in
 * tests. -ENOMEM.
 */
int injection_add_nodes(struct injection *injection, const struct tenant_terms *terms,
			const char *dev, struct error *err);
/* As the reply to `claim` has it (docs/reference/protocol.md), and as base/cdi/cdi_spec.h takes it. A new reference; NULL: no memory. */
json_t *injection_to_json(const struct injection *injection);
/* Frees what it holds and leaves it empty. */
void injection_free(struct injection *injection);

#define cleanup_injection cleanup(injection_free)
