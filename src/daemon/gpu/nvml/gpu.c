#include "daemon/gpu/nvml/gpu.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

static const struct gpu_backend *const backends[] = { &gpu_nvml };

const struct gpu_backend *gpu_backend_find(const char *name)
{
	for (size_t i = 0; i < sizeof(backends) / sizeof(backends[0]); i++)
		if (!strcmp(backends[i]->name, name))
			return backends[i];
	return NULL;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

int gpu_uuid_parse(const char *text, uint8_t ret_uuid[16])
{
	uint8_t uuid[16] = { 0 };
	unsigned digits = 0;

	if (!strncasecmp(text, "GPU-", 4) || !strncasecmp(text, "MIG-", 4))
		text += 4;
	for (; *text; text++) {
		if (*text == '-')
			continue;
		int d = hex_digit(*text);
		if (d < 0 || digits == 32)
			return -EINVAL;
		uuid[digits / 2] = (uint8_t)(uuid[digits / 2] << 4 | d);
		digits++;
	}
	if (digits != 32)
		return -EINVAL;
	memcpy(ret_uuid, uuid, sizeof(uuid));
	return 0;
}

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
	char gpu[256], compute[256];

	snprintf(gpu, sizeof(gpu), "%s/gpu%u/mig/gi%u/access", dir, card_minor, gpu_instance);
	snprintf(compute, sizeof(compute), "%s/gpu%u/mig/gi%u/ci%u/access", dir, card_minor,
		 gpu_instance, compute_instance);
	caps.is_known = read_minor(gpu, &caps.gpu_instance) &&
			read_minor(compute, &caps.compute_instance);
	return caps;
}
