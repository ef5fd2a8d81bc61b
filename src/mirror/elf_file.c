#include "mirror/elf_file.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

/* Offsets of the ELF fields that are read, for 32 or 64 bits. `word` is the size of an address. */
struct layout {
	unsigned word;
	/* offsets in the file header */
	unsigned header_size, header_offset, header_entry, header_count;
	unsigned segment_offset, segment_address, segment_size; /* offsets in a program header */
};
static const struct layout layout32 = { 4, sizeof(Elf32_Ehdr), 28, 42, 44, 4, 8, 16 };
static const struct layout layout64 = { 8, sizeof(Elf64_Ehdr), 32, 54, 56, 8, 16, 32 };

struct image {
	const uint8_t *bytes;
	size_t size;
	const struct layout *layout;
	uint64_t segments, segment_size, segment_count;
};

/* Reads `width` bytes; 0 if the offset is outside of the file. */
static uint64_t integer(const struct image *image, uint64_t offset, unsigned width)
{
	uint64_t value = 0;

	if (offset > image->size || width > image->size - offset)
		return 0;
	memcpy(&value, image->bytes + offset, width);
	return value;
}

static uint64_t segment_field(const struct image *image, uint64_t i, unsigned field, unsigned width)
{
	return integer(image, image->segments + i * image->segment_size + field, width);
}

/* Returns the file offset that the loader maps at this address; UINT64_MAX if there is none. */
static uint64_t offset_of(const struct image *image, uint64_t address)
{
	const struct layout *l = image->layout;

	for (uint64_t i = 0; i < image->segment_count; i++) {
		uint64_t start = segment_field(image, i, l->segment_address, l->word);
		if (segment_field(image, i, 0, 4) == PT_LOAD && address >= start &&
		    address - start < segment_field(image, i, l->segment_size, l->word))
			return segment_field(image, i, l->segment_offset, l->word) + address - start;
	}
	return UINT64_MAX;
}

static const char *string_at(const struct image *image, uint64_t table, uint64_t offset)
{
	uint64_t at = table + offset;

	if (at < table || at >= image->size || !memchr(image->bytes + at, '\0', image->size - at))
		return NULL;
	return (const char *)image->bytes + at;
}

/* Takes two passes over the dynamic section at `start`, because the entry for the string table may come last. */
static int read_dynamic(const struct image *image, uint64_t start, struct elf_file *ret)
{
	unsigned word = image->layout->word;
	uint64_t strings = UINT64_MAX, tag = 0;

	for (int round = 0; round < 2; round++)
		for (uint64_t at = start; at + 2 * word <= image->size; at += 2 * word) {
			uint64_t value = integer(image, at + word, word);
			tag = integer(image, at, word);
			if (tag == DT_NULL)
				break;
			if (tag == DT_STRTAB)
				strings = offset_of(image, value);
			if (round == 0 || strings == UINT64_MAX)
				continue;
			if (tag == DT_SONAME)
				ret->soname = string_at(image, strings, value);
			else if (tag == DT_NEEDED && ret->needed_count < ELF_FILE_NEEDED_MAX &&
				 string_at(image, strings, value))
				ret->needed[ret->needed_count++] = string_at(image, strings, value);
		}
	return strings == UINT64_MAX ? -ENOEXEC : 0;
}

int elf_file_read(const void *bytes, size_t size, struct elf_file *ret_file)
{
	const uint8_t *ident = bytes;
	struct image image = { .bytes = bytes, .size = size };
	struct elf_file file = { 0 };

	if (size < EI_NIDENT || memcmp(ident, ELFMAG, SELFMAG) != 0 ||
	    ident[EI_DATA] != ELFDATA2LSB ||
	    (ident[EI_CLASS] != ELFCLASS32 && ident[EI_CLASS] != ELFCLASS64))
		return -ENOEXEC;
	file.bits = ident[EI_CLASS] == ELFCLASS64 ? 64 : 32;
	image.layout = file.bits == 64 ? &layout64 : &layout32;
	if (size < image.layout->header_size || integer(&image, 16, 2) != ET_DYN)
		return -ENOEXEC;
	file.machine = (uint16_t)integer(&image, 18, 2);
	image.segments = integer(&image, image.layout->header_offset, image.layout->word);
	image.segment_size = integer(&image, image.layout->header_entry, 2);
	image.segment_count = integer(&image, image.layout->header_count, 2);
	for (uint64_t i = 0; i < image.segment_count; i++) {
		if (segment_field(&image, i, 0, 4) != PT_DYNAMIC)
			continue;
		int r = read_dynamic(&image,
				     segment_field(&image, i, image.layout->segment_offset,
						   image.layout->word),
				     &file);
		if (r == 0)
			*ret_file = file;
		return r;
	}
	return -ENOEXEC;
}
