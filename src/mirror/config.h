/*
 * The names of libraries and binaries to mirror, in the format of gpu-manager's volume.conf
 * (docs/reference/seeds.md, section 4):
 *
 *     {"volume": [{"name": "nvidia", "base": "/etc/gpu-manager/vdriver",
 *                  "components": {"binaries": ["nvidia-smi"], "libraries": ["libcuda.so"]}}]}
 *
 * The components of all volumes are merged. "base" is ignored, since the command line names the
 * place.
 */
#pragma once

#include "base/error.h"

struct mirror_config {
	char **libraries; /* NULL-terminated, owned; "libcuda.so" means libcuda.so and libcuda.so.N */
	char **binaries;
};

/* Parses JSON text. Returns -EINVAL with the fault and its position, or -ENOMEM. */
int mirror_config_parse(const char *text, struct mirror_config *ret_config, struct error *err);

/* Lists the NVIDIA driver's libraries and binaries that programs in containers use. Returns -ENOMEM on failure. */
int mirror_config_default(struct mirror_config *ret_config, struct error *err);

void mirror_config_free(struct mirror_config *config);
