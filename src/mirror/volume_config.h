/*
 * The names of the libraries and programs to mirror, in the format of gpu-manager's volume.conf (docs/reference/seeds.md,
 * section 4):
 *
 *    {"volume": [{"name": "nvidia", "base": "/etc/gpu-manager/vdriver",
 *                 "components": {"binaries": ["nvidia-smi"], "libraries": ["libcuda.so"]}}]}
 *
 * The components of all volumes are merged. "base" is ignored, because the command line names the mirror's place.
 */
#pragma once

#include "base/error.h"

struct mirror_config {
	/* NULL-terminated, owned; "libcuda.so" means libcuda.so and libcuda.so.N */
	char **libraries;
	char **binaries;
};

/* Returns 0, -EINVAL with the fault and its position, or -ENOMEM. */
int mirror_config_parse(const char *text, struct mirror_config *ret_config, struct error *err);

/* The NVIDIA driver's libraries and programs that programs in containers use. Returns 0 or -ENOMEM. */
int mirror_config_default(struct mirror_config *ret_config, struct error *err);

void mirror_config_free(struct mirror_config *config);
