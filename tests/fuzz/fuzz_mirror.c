/* Files that `allot mirror` reads: by the first byte the loader's cache, a library, or the list of what to mirror. */
#include "fuzz.h"

#include "mirror/volume_config.h"
#include "mirror/elf_file.h"
#include "mirror/ld_cache.h"

static int visit(void *context, const char *name, const char *path, struct error *err)
{
	*(size_t *)context += strlen(name) + strlen(path);
	return 0;
}

static void check_library(const struct elf_file *file)
{
	size_t length = file->soname ? strlen(file->soname) : 0;

	FUZZ_CHECK(file->needed_count <= ELF_FILE_NEEDED_MAX);
	for (unsigned i = 0; i < file->needed_count; i++)
		length += strlen(file->needed[i]);
	FUZZ_CHECK(length < SIZE_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mirror_config config;
	struct elf_file file;
	struct error err;
	size_t sum = 0;

	if (size < 1)
		return 0;
	char *bytes = fuzz_text(data + 1, size - 1);
	switch (data[0] % 3) {
	case 0: ld_cache_each(bytes, size - 1, visit, &sum, &err); break;
	case 1:
		if (elf_file_read(bytes, size - 1, &file) == 0)
			check_library(&file);
		break;
	default:
		if (mirror_config_parse(bytes, &config, &err) == 0)
			mirror_config_free(&config);
	}
	free(bytes);
	return 0;
}
