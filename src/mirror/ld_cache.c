#include "mirror/ld_cache.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#define MAGIC "glibc-ld.so.cache1.1"

/* As in glibc's sysdeps/generic/dl-cache.h, in the machine's byte order. */
struct header {
	char magic[20];
	uint32_t count;
	uint32_t strings_size;
	uint8_t flags;
	uint8_t padding[3];
	uint32_t extension_offset;
	uint32_t unused[3];
};
struct entry {
	int32_t flags;
	uint32_t name, path; /* offsets from the header */
	uint32_t os_version;
	uint64_t hardware;
};

/* NULL if the string does not end inside the file. */
static const char *string_at(const char *start, size_t size, uint32_t offset)
{
	return offset < size && memchr(start + offset, '\0', size - offset) ? start + offset : NULL;
}

int ld_cache_each(const void *bytes, size_t size, ld_cache_visitor *visit, void *context,
		  struct error *err)
{
	const char *start = size ? memmem(bytes, size, MAGIC, sizeof(MAGIC) - 1) : NULL;
	struct header header;

	if (!start)
		return error_set(
			err, EINVAL,
			"the loader's cache is not in a format that allot can read: run ldconfig");
	size -= (size_t)(start - (const char *)bytes);
	if (size < sizeof(header))
		return error_set(err, EINVAL,
				 "the loader's cache (/etc/ld.so.cache) is incomplete: run ldconfig");
	memcpy(&header, start, sizeof(header));
	if (header.count > (size - sizeof(header)) / sizeof(struct entry))
		return error_set(err, EINVAL,
				 "the loader's cache (/etc/ld.so.cache) is incomplete: run ldconfig");
	for (uint32_t i = 0; i < header.count; i++) {
		struct entry entry;
		memcpy(&entry, start + sizeof(header) + i * sizeof(entry), sizeof(entry));
		const char *name = string_at(start, size, entry.name);
		const char *path = string_at(start, size, entry.path);
		if (!name || !path)
			return error_set(err, EINVAL, "the loader's cache is damaged: run ldconfig");
		int r = visit(context, name, path, err);
		if (r < 0)
			return r;
	}
	return 0;
}
