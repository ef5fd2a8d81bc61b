#include "mirror/shim.h"

#include <elf.h>
#include <string.h>

#define RUNPATH "$ORIGIN"
#define STRINGS_MAX (SHIM_SIZE_MAX - 1024)
/* The largest page size of the supported machines: some arm64 kernels use 64 KiB. */
#define ALIGNMENT 0x10000

/*
 * The whole file. A single PT_LOAD segment holds all of it; the other two program headers load nothing. The PT_LOAD segment is
 * writable, because older loaders relocate the dynamic section in place.
 */
struct image {
	Elf64_Ehdr header;
	Elf64_Phdr segment[3];
	Elf64_Sym symbol; /* the reserved null symbol */
	Elf64_Dyn dynamic[12];
	uint32_t hash[4]; /* an empty hash table: one bucket, one chain */
	char strings[STRINGS_MAX];
};
_Static_assert(sizeof(struct image) <= SHIM_SIZE_MAX, "fits");

#define AT(member) offsetof(struct image, member)

struct builder {
	struct image image;
	size_t strings_size;
	size_t entries;
	int is_full;
};

static size_t add_string(struct builder *b, const char *text)
{
	size_t length = strlen(text) + 1, at = b->strings_size;

	if (length > STRINGS_MAX - at) {
		b->is_full = 1;
		return 0;
	}
	memcpy(b->image.strings + at, text, length);
	b->strings_size += length;
	return at;
}

static void add_entry(struct builder *b, int64_t tag, uint64_t value)
{
	b->image.dynamic[b->entries++] = (Elf64_Dyn){ .d_tag = tag, .d_un.d_val = value };
}

static void write_dynamic(struct builder *b, const char *soname, const char *const needed[2])
{
	for (int i = 0; i < 2; i++)
		add_entry(b, DT_NEEDED, add_string(b, needed[i]));
	add_entry(b, DT_SONAME, add_string(b, soname));
	add_entry(b, DT_RUNPATH, add_string(b, RUNPATH));
	add_entry(b, DT_HASH, AT(hash));
	add_entry(b, DT_STRTAB, AT(strings));
	add_entry(b, DT_SYMTAB, AT(symbol));
	add_entry(b, DT_STRSZ, b->strings_size);
	add_entry(b, DT_SYMENT, sizeof(Elf64_Sym));
}

static void write_headers(struct image *image, uint16_t machine, size_t size)
{
	image->header = (Elf64_Ehdr){
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			     EV_CURRENT },
		.e_type = ET_DYN,
		.e_machine = machine,
		.e_version = EV_CURRENT,
		.e_phoff = AT(segment),
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 3,
	};
	image->segment[0] = (Elf64_Phdr){ .p_type = PT_LOAD,
					  .p_flags = PF_R | PF_W,
					  .p_filesz = size,
					  .p_memsz = size,
					  .p_align = ALIGNMENT };
	image->segment[1] = (Elf64_Phdr){ .p_type = PT_DYNAMIC,
					  .p_flags = PF_R | PF_W,
					  .p_offset = AT(dynamic),
					  .p_vaddr = AT(dynamic),
					  .p_paddr = AT(dynamic),
					  .p_filesz = sizeof(image->dynamic),
					  .p_memsz = sizeof(image->dynamic),
					  .p_align = 8 };
	/* Without PT_GNU_STACK a loader makes the stack executable. */
	image->segment[2] = (Elf64_Phdr){ .p_type = PT_GNU_STACK, .p_flags = PF_R | PF_W };
}

size_t shim_make(uint16_t machine, const char *soname, const char *const needed[2],
		 uint8_t ret_bytes[SHIM_SIZE_MAX])
{
	struct builder b = { .strings_size = 1, .image.hash = { 1, 1 } };

	write_dynamic(&b, soname, needed);
	size_t size = AT(strings) + b.strings_size;
	write_headers(&b.image, machine, size);
	if (b.is_full)
		return 0;
	memcpy(ret_bytes, &b.image, size);
	return size;
}
