#include "mirror/volume_config.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* Compute, monitoring and video coding. Libraries for graphics must be listed in a configuration. */
static const char *const default_libraries[] = {
	"libcuda.so",
	"libcudadebugger.so",
	"libnvcuvid.so",
	"libnvidia-cfg.so",
	"libnvidia-encode.so",
	"libnvidia-gpucomp.so",
	"libnvidia-ml.so",
	"libnvidia-nvvm.so",
	"libnvidia-nvvm70.so",
	"libnvidia-opencl.so",
	"libnvidia-opticalflow.so",
	"libnvidia-pkcs11.so",
	"libnvidia-pkcs11-openssl3.so",
	"libnvidia-ptxjitcompiler.so",
	"libnvidia-sandboxutils.so",
	NULL,
};
static const char *const default_binaries[] = {
	"nvidia-cuda-mps-control",
	"nvidia-cuda-mps-server",
	"nvidia-debugdump",
	"nvidia-persistenced",
	"nvidia-smi",
	NULL,
};

static int no_memory(struct error *err)
{
	return error_set(err, ENOMEM, "out of memory");
}

static void free_names(char **names)
{
	for (char **n = names; n && *n; n++)
		free(*n);
	free(names);
}

void mirror_config_free(struct mirror_config *config)
{
	free_names(config->libraries);
	free_names(config->binaries);
	*config = (struct mirror_config){ 0 };
}

static int append(char ***names, const char *name, struct error *err)
{
	size_t count = 0;

	while (*names && (*names)[count])
		count++;
	char **grown = realloc(*names, (count + 2) * sizeof(*grown));
	if (!grown)
		return no_memory(err);
	*names = grown;
	grown[count + 1] = NULL;
	grown[count] = strdup(name);
	return grown[count] ? 0 : no_memory(err);
}

static int append_all(char ***names, const char *const *list, struct error *err)
{
	int r = 0;

	for (; r == 0 && *list; list++)
		r = append(names, *list, err);
	return r;
}

int mirror_config_default(struct mirror_config *ret_config, struct error *err)
{
	struct mirror_config config = { 0 };
	int r = append_all(&config.libraries, default_libraries, err);

	if (r == 0)
		r = append_all(&config.binaries, default_binaries, err);
	if (r < 0)
		mirror_config_free(&config);
	else
		*ret_config = config;
	return r;
}

/* A name with '/' is refused, so that only the searched directories can be read. */
static int read_names(const json_t *list, const char *what, char ***names, struct error *err)
{
	size_t i;
	json_t *item;

	if (!list)
		return 0;
	if (!json_is_array(list))
		return error_set(err, EINVAL, "\"%s\": not a list of names", what);
	json_array_foreach(list, i, item)
	{
		const char *name = json_string_value(item);

		if (!name || !*name || strchr(name, '/'))
			return error_set(err, EINVAL,
					 "\"%s\": entry %zu must be a file's name without '/'",
					 what, i + 1);
		int r = append(names, name, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int read_volume(const json_t *volume, struct mirror_config *config, struct error *err)
{
	const json_t *components = json_object_get(volume, "components");

	if (!json_is_object(components))
		return error_set(err, EINVAL, "\"components\": missing, or not an object");
	int r = read_names(json_object_get(components, "libraries"), "libraries",
			   &config->libraries, err);
	return r < 0 ? r
		     : read_names(json_object_get(components, "binaries"), "binaries",
				  &config->binaries, err);
}

static int read_volumes(const json_t *volumes, struct mirror_config *config, struct error *err)
{
	size_t i;
	json_t *volume;

	if (!json_is_array(volumes) || json_array_size(volumes) == 0)
		return error_set(err, EINVAL, "\"volume\": missing, or not a list of volumes");
	json_array_foreach(volumes, i, volume)
	{
		int r = read_volume(volume, config, err);
		if (r < 0)
			return error_add(err, r, "volume %zu", i + 1);
	}
	return 0;
}

int mirror_config_parse(const char *text, struct mirror_config *ret_config, struct error *err)
{
	struct mirror_config config = { 0 };
	json_error_t where;
	json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &where);

	if (!root)
		return error_set(err, EINVAL, "line %d: %s", where.line, where.text);
	int r = read_volumes(json_object_get(root, "volume"), &config, err);
	json_decref(root);
	if (r == 0 && !config.libraries)
		r = error_set(err, EINVAL,
			      "no volume lists a library: add names to \"libraries\" in \"components\" "
			      "of a volume");
	if (r < 0)
		mirror_config_free(&config);
	else
		*ret_config = config;
	return r;
}
