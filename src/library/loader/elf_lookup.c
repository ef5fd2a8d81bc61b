#include "library/loader/elf_lookup.h"

#include <elf.h>
#include <link.h>
#include <sys/auxv.h>

#include "library/loader/name.h"
#include "library/sys/text.h"

#define VERSYM_HIDDEN 0x8000

static uintptr_t distance(uintptr_t a, uintptr_t b)
{
	return a > b ? a - b : b - a;
}

/*
 * The address in an entry of a dynamic section. glibc has relocated these addresses; musl and the vDSO have not. The right one
 * is near the section. It need not be above `base`: gVisor's vDSO is linked at 0xffffffffff700000.
 */
static const void *dynamic_pointer(uintptr_t base, const ElfW(Dyn) * dyn)
{
	uintptr_t section = (uintptr_t)dyn, value = dyn->d_un.d_ptr, moved = base + value;
	bool is_moved_nearer = distance(moved, section) < distance(value, section);

	return (const void *)(is_moved_nearer ? moved : value);
}

static bool read_dynamic(uintptr_t base, const ElfW(Dyn) * dyn, const char *file,
			 struct elf_object *ret)
{
	ElfW(Addr) soname = 0;
	bool has_soname = false;
	struct elf_object o = { .base = base };

	if (!dyn)
		return false;
	for (; dyn->d_tag != DT_NULL; dyn++) {
		const void *p = dynamic_pointer(o.base, dyn);
		switch (dyn->d_tag) {
		case DT_SYMTAB: o.symbols = p; break;
		case DT_STRTAB: o.strings = p; break;
		case DT_GNU_HASH: o.gnu_hash = p; break;
		case DT_HASH: o.sysv_hash = p; break;
		case DT_VERSYM: o.versions = p; break;
		case DT_SONAME:
			soname = dyn->d_un.d_val;
			has_soname = true;
			break;
		default: break;
		}
	}
	if (!o.symbols || !o.strings || (!o.gnu_hash && !o.sysv_hash))
		return false;
	if (has_soname)
		o.soname = o.strings + soname;
	else if (file)
		o.soname = text_base_name(file);
	*ret = o;
	return true;
}

static const ElfW(Dyn) * dynamic_of(uintptr_t base, const ElfW(Phdr) * headers, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (headers[i].p_type == PT_DYNAMIC)
			return (const ElfW(Dyn) *)(base + headers[i].p_vaddr);
	return NULL;
}

static bool read_object(const struct dl_phdr_info *info, struct elf_object *ret)
{
	return read_dynamic(info->dlpi_addr,
			    dynamic_of(info->dlpi_addr, info->dlpi_phdr, info->dlpi_phnum),
			    info->dlpi_name, ret);
}

static void *defined_address(const struct elf_object *o, uint32_t index, const char *name)
{
	const ElfW(Sym) *sym = (const ElfW(Sym) *)o->symbols + index;
	unsigned type = sym->st_info & 0xf;

	/* Resolving an indirect function means calling it, so skip these. No driver has one. */
	if (sym->st_shndx == SHN_UNDEF || sym->st_value == 0 || type == STT_GNU_IFUNC ||
	    type == STT_TLS || !text_equal(o->strings + sym->st_name, name))
		return NULL;
	return (void *)(o->base + sym->st_value);
}

/* A default version, such as dlsym@@GLIBC_2.34, is preferred to a hidden one, such as dlsym@GLIBC_2.2.5. */
static bool is_default_version(const struct elf_object *o, uint32_t index)
{
	return !o->versions || !(o->versions[index] & VERSYM_HIDDEN);
}

static void *gnu_lookup(const struct elf_object *o, const char *name, uint32_t hash)
{
	const uint32_t *h = o->gnu_hash;
	uint32_t buckets = h[0], offset = h[1], bloom_words = h[2];
	const uint32_t *bucket = h + 4 + bloom_words * (sizeof(ElfW(Addr)) / sizeof(*h));
	const uint32_t *chain = bucket + buckets;
	void *hidden = NULL;

	if (!buckets)
		return NULL;
	uint32_t i = bucket[hash % buckets];
	if (i < offset)
		return NULL;
	for (;; i++) {
		uint32_t entry = chain[i - offset];
		if ((entry | 1) == (hash | 1)) {
			void *address = defined_address(o, i, name);
			if (address && is_default_version(o, i))
				return address;
			if (address)
				hidden = address;
		}
		if (entry & 1)
			return hidden;
	}
}

static void *sysv_lookup(const struct elf_object *o, const char *name)
{
	const uint32_t *h = o->sysv_hash;
	uint32_t buckets = h[0], hash = 0;
	void *hidden = NULL;

	for (const unsigned char *c = (const unsigned char *)name; *c; c++) {
		hash = (hash << 4) + *c;
		uint32_t high = hash & 0xf0000000U;
		hash = (hash ^ (high >> 24)) & ~high;
	}
	if (!buckets)
		return NULL;
	for (uint32_t i = h[2 + hash % buckets]; i; i = h[2 + buckets + i]) {
		void *address = defined_address(o, i, name);
		if (address && is_default_version(o, i))
			return address;
		if (address)
			hidden = address;
	}
	return hidden;
}

void *elf_symbol_hashed(const struct elf_object *object, const char *name, uint32_t gnu_hash)
{
	return object->gnu_hash ? gnu_lookup(object, name, gnu_hash) : sysv_lookup(object, name);
}

void *elf_symbol(const struct elf_object *object, const char *name)
{
	return elf_symbol_hashed(object, name, name_gnu_hash(name));
}

struct search {
	/* The SONAME of the object to find; NULL to find the symbol below instead. */
	const char *soname;
	/* The symbol to find, outside the object that contains `self`. */
	const char *symbol;
	const void *self;
	/* Objects are skipped while this is false: until the search has passed `self`, unless set at the start. */
	bool past_self;
	bool found;
	struct elf_object object;
	void *address;
};

static bool holds(const struct dl_phdr_info *info, const void *address)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + p->p_vaddr;
		if (p->p_type == PT_LOAD && (uintptr_t)address - start < p->p_memsz)
			return true;
	}
	return false;
}

static int visit(struct dl_phdr_info *info, size_t size, void *data)
{
	struct search *s = data;

	if (s->self && holds(info, s->self)) {
		s->past_self = true;
		return 0;
	}
	if (!s->past_self || !read_object(info, &s->object))
		return 0;
	if (s->soname) {
		s->found = s->object.soname && text_equal(s->object.soname, s->soname);
	} else {
		s->address = elf_symbol(&s->object, s->symbol);
		s->found = s->address != NULL;
	}
	return s->found;
}

bool elf_find_object(const char *soname, struct elf_object *ret_object)
{
	struct search s = { .soname = soname, .past_self = true };

	dl_iterate_phdr(visit, &s);
	if (s.found)
		*ret_object = s.object;
	return s.found;
}

void *elf_next_symbol(const void *self, const char *name)
{
	struct search s = { .symbol = name, .self = self };

	dl_iterate_phdr(visit, &s);
	return s.address;
}

void *elf_any_symbol(const void *self, const char *name)
{
	struct search s = { .symbol = name, .self = self, .past_self = true };

	dl_iterate_phdr(visit, &s);
	return s.address;
}

/* Finds the loader's list of objects as a debugger does: through DT_DEBUG of the program. */
static const struct link_map *first_link_map(void)
{
	const ElfW(Phdr) *headers = (const ElfW(Phdr) *)getauxval(AT_PHDR);
	size_t count = getauxval(AT_PHNUM);
	uintptr_t base = 0;

	for (size_t i = 0; headers && i < count; i++)
		if (headers[i].p_type == PT_PHDR)
			base = (uintptr_t)headers - headers[i].p_vaddr;
	const ElfW(Dyn) *dyn = headers ? dynamic_of(base, headers, count) : NULL;
	for (; dyn && dyn->d_tag != DT_NULL; dyn++)
		if (dyn->d_tag == DT_DEBUG && dyn->d_un.d_ptr)
			return ((const struct r_debug *)dyn->d_un.d_ptr)->r_map;
	return NULL;
}

static bool read_map(const struct link_map *m, struct elf_object *ret)
{
	return read_dynamic(m->l_addr, m->l_ld, m->l_name, ret);
}

extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));
extern const char _end __attribute__((visibility("hidden"))); /* defined by the linker */

void *elf_next_symbol_early(const char *name)
{
	bool past_self = false;

	for (const struct link_map *m = first_link_map(); m; m = m->l_next) {
		struct elf_object object;
		void *address = NULL;
		if (m->l_addr == (uintptr_t)&__ehdr_start)
			past_self = true;
		else if (past_self && read_map(m, &object))
			address = elf_symbol(&object, name);
		if (address)
			return address;
	}
	return NULL;
}

void *elf_real_function(void **slot, const char *name)
{
	void *function = __atomic_load_n(slot, __ATOMIC_RELAXED);

	if (function)
		return function;
	function = elf_next_symbol_early(name);
	if (!function)
		function = elf_next_symbol(&__ehdr_start, name);
	if (!function)
		function = elf_any_symbol(&__ehdr_start, name);
	__atomic_store_n(slot, function, __ATOMIC_RELAXED);
	return function;
}

bool elf_object_of_handle(const void *handle, struct elf_object *ret_object)
{
	return handle && read_map(handle, ret_object);
}

bool elf_first_of_namespace(const void *handle, struct elf_object *ret_object)
{
	const struct link_map *m = handle, *programs = first_link_map();

	while (m && m->l_prev)
		m = m->l_prev;
	return m && programs && m != programs && read_map(m, ret_object);
}

size_t elf_objects_from(const void *handle)
{
	size_t count = 0;

	for (const struct link_map *m = handle; m; m = m->l_next)
		count++;
	return count;
}

struct holder {
	const void *address;
	bool is_past_us, found;
	struct elf_object object;
};

static int visit_holder(struct dl_phdr_info *info, size_t size, void *data)
{
	struct holder *h = data;

	if (holds(info, h->address)) {
		h->found = read_object(info, &h->object);
		return 1;
	}
	h->is_past_us = h->is_past_us || holds(info, &__ehdr_start);
	return 0;
}

bool elf_object_holding(const void *address, struct elf_object *ret_object, bool *ret_is_before_us)
{
	struct holder h = { .address = address };

	dl_iterate_phdr(visit_holder, &h);
	if (!h.found)
		return false;
	*ret_object = h.object;
	*ret_is_before_us = !h.is_past_us;
	return true;
}

bool elf_is_own(const void *address)
{
	return (uintptr_t)address >= (uintptr_t)&__ehdr_start &&
	       (uintptr_t)address < (uintptr_t)&_end;
}

bool elf_is_in_first_namespace(void)
{
	const struct link_map *m = first_link_map();

	if (!m)
		return true; /* a program without a dynamic linker */
	while (m && m->l_addr != (uintptr_t)&__ehdr_start)
		m = m->l_next;
	return m != NULL;
}

static int visit_own(struct dl_phdr_info *info, size_t size, void *data)
{
	if (!holds(info, &__ehdr_start))
		return 0;
	*(const char **)data = info->dlpi_name;
	return 1;
}

const char *elf_own_path(void)
{
	const char *path = NULL;

	dl_iterate_phdr(visit_own, &path);
	return path && *path ? path : NULL;
}
