#include "daemon/gpu/nvml/mig_caps.h"

#include <stdio.h>

#include "base/cleanup.h"

#define PATH_SIZE 256

static bool read_minor(const char *path, unsigned *ret)
{
	char line[128];
	cleanup_file FILE *file = fopen(path, "re");

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "DeviceFileMinor: %9u", ret) == 1)
			return true;
	return false;
}

struct mig_caps mig_caps_read(const char *dir, unsigned card_minor, unsigned gpu_instance,
			      unsigned compute_instance)
{
	struct mig_caps caps = { 0 };
	char gpu[PATH_SIZE], compute[PATH_SIZE];

	snprintf(gpu, sizeof(gpu), "%s/gpu%u/mig/gi%u/access", dir, card_minor, gpu_instance);
	snprintf(compute, sizeof(compute), "%s/gpu%u/mig/gi%u/ci%u/access", dir, card_minor,
		 gpu_instance, compute_instance);
	caps.is_known = read_minor(gpu, &caps.gpu_instance) &&
			read_minor(compute, &caps.compute_instance);
	return caps;
}
