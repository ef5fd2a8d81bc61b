/*
 * What is to be mirrored: names of libraries and binaries, as gpu-manager's volume.conf has them
 * (docs/reference/seeds.md, section 4):
 *
 *     {"volume": [{"name": "nvidia", "base": "/etc/gpu-manager/vdriver",
 *                  "components": {"binaries": ["nvidia-smi"], "libraries": ["libcuda.so"]}}]}
 *
 * The components of all volumes are taken together; "base" is read over, since the command line names
 * the place.
 */
#pragma once

#include "base/error.h"

struct mirror_config {
	char **libraries; /* NULL-terminated, ours; "libcuda.so" means libcuda.so and libcuda.so.N */
	char **binaries;
};

/* Reads text (JSON). -EINVAL with what is wrong, and where; -ENOMEM. */
int mirror_config_parse(const char *text, struct mirror_config *ret_config, struct error *err);

/* The libraries and binaries of NVIDIA's driver that programs in a container use. -ENOMEM. */
int mirror_config_default(struct mirror_config *ret_config, struct error *err);

void mirror_config_free(struct mirror_config *config);
