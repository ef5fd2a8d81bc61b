#include "library/loader/real.h"

#include <stddef.h>

#include "library/loader/fast_path.h"
#include "library/loader/elf_lookup.h"
#include "library/loader/known.h"
#include "library/loader/name.h"
#include "library/loader/unknown.h"
#include "library/sys/locks.h"
#include "library/sys/text.h"

struct real_driver real;
struct real_nvml real_nvml;
#define DECLARE_HOOK(symbol, hook, params, args) CUresult symbol params;
#define DECLARE_WORK(symbol, streams, params, args, ...) CUresult symbol params;
DRIVER_TABLE(DECLARE_HOOK, DECLARE_WORK)
#define DECLARE_NVML_HOOK(symbol, hook, params, args) nvmlReturn_t symbol params;
#define DECLARE_NVML_NONE(symbol, params, args) nvmlReturn_t symbol params;
NVML_TABLE(DECLARE_NVML_HOOK, DECLARE_NVML_HOOK, DECLARE_NVML_NONE)

struct symbol_row {
	const char *name;
	void **slot;
	void *hook; /* NULL if the library calls the function, but does not hook it */
};

#define ROW_HOOK(symbol, hook, params, args) { #symbol, (void **)&real.symbol, (void *)symbol },
#define ROW_WORK(symbol, streams, params, args, ...) \
	{ #symbol, (void **)&real.symbol, (void *)symbol },
#define ROW_CALL(symbol, params) { #symbol, (void **)&real.symbol, NULL },

/* In the order of the row numbers in names.h. */
static const struct symbol_row driver_rows[] = { DRIVER_TABLE(ROW_HOOK, ROW_WORK)
							 DRIVER_CALLS(ROW_CALL) };

#define ROW_NVML_HOOK(symbol, hook, params, args) \
	{ #symbol, (void **)&real_nvml.symbol, (void *)symbol },
#define ROW_NVML_NONE(symbol, params, args) { #symbol, (void **)&real_nvml.symbol, (void *)symbol },
#define ROW_NVML_CALL(symbol, params) { #symbol, (void **)&real_nvml.symbol, NULL },

static const struct symbol_row nvml_rows[] = { NVML_TABLE(ROW_NVML_HOOK, ROW_NVML_HOOK,
							  ROW_NVML_NONE) NVML_CALLS(ROW_NVML_CALL) };
#define DRIVER_ROWS (sizeof(driver_rows) / sizeof(driver_rows[0]))
#define NVML_ROWS (sizeof(nvml_rows) / sizeof(nvml_rows[0]))

static _Atomic bool driver_found, nvml_found;

/*
 * A table of the hooked rows, by the addresses of their functions. Entries are never removed; an entry of an unloaded driver no
 * longer matches its row's slot. If a program loads so many drivers that the table is full, it is not used any more.
 */
#define PLACES 2048 /* a power of two */
static const struct symbol_row *_Atomic by_address[PLACES];
static const void *_Atomic address_of[PLACES];
static unsigned places_used;
static _Atomic bool is_full;

/* Returns the place of an address, or the empty place for it. */
static size_t place_of(const void *address)
{
	size_t i = (uintptr_t)address * 0x9e3779b97f4a7c15ULL >> 32;

	for (;; i++) {
		const void *there = atomic_load_explicit(&address_of[i % PLACES],
							 memory_order_acquire);
		if (!there || there == address)
			return i % PLACES;
	}
}

/* If two names have one function, the first row's hook is used. The caller holds locks.real_find. */
static void add_row(const void *address, const struct symbol_row *row)
{
	size_t i = place_of(address);
	const struct symbol_row *there = atomic_load(&by_address[i]);

	if (there && __atomic_load_n(there->slot, __ATOMIC_RELAXED) == address)
		return;
	if (!there && ++places_used > PLACES * 3 / 4) {
		atomic_store(&is_full, true);
		return;
	}
	atomic_store(&by_address[i], row);
	atomic_store_explicit(&address_of[i], address, memory_order_release);
}

static void *hook_of_row(size_t row)
{
	return __atomic_load_n(driver_rows[row].slot, __ATOMIC_RELAXED) ? driver_rows[row].hook
									: NULL;
}

/* The caller holds locks.real_find. */
static void fill_from(const struct elf_object *object, const struct symbol_row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		void *address = elf_symbol(object, rows[i].name);
		__atomic_store_n(rows[i].slot, address, __ATOMIC_RELAXED);
		if (address && rows[i].hook)
			add_row(address, &rows[i]);
	}
	if (rows == driver_rows) {
		known_fill(object, hook_of_row);
		fast_path_close(FAST_PATH_ALL);
	}
}

static bool fill(const char *soname, const struct symbol_row *rows, size_t count,
		 _Atomic bool *found)
{
	struct elf_object object;

	if (likely(atomic_load_explicit(found, memory_order_acquire)))
		return true;
	WITH_LOCK(&locks.real_find);
	if (atomic_load_explicit(found, memory_order_relaxed))
		return true;
	if (!elf_find_object(soname, &object))
		return false;
	fill_from(&object, rows, count);
	atomic_store_explicit(found, true, memory_order_release);
	return true;
}

/* If the program unloaded the driver and loaded it at another address, fills the slots again and returns true. */
static bool refill(const char *soname, const struct symbol_row *rows, size_t count)
{
	struct elf_object object;

	WITH_LOCK(&locks.real_find);
	if (!elf_find_object(soname, &object) ||
	    elf_symbol(&object, rows[0].name) == __atomic_load_n(rows[0].slot, __ATOMIC_RELAXED))
		return false;
	fill_from(&object, rows, count);
	return true;
}

bool real_find_driver(void)
{
	return fill("libcuda.so.1", driver_rows, DRIVER_ROWS, &driver_found);
}

bool real_find_nvml(void)
{
	return fill("libnvidia-ml.so.1", nvml_rows, NVML_ROWS, &nvml_found);
}

static void *hook_at(const void *address)
{
	const struct symbol_row *row = atomic_load_explicit(&by_address[place_of(address)],
							    memory_order_relaxed);

	return row && __atomic_load_n(row->slot, __ATOMIC_RELAXED) == address ? row->hook : NULL;
}

static void *hook_in(const struct symbol_row *rows, size_t count, const void *address)
{
	for (size_t i = 0; i < count; i++)
		if (rows[i].hook && *rows[i].slot == address)
			return rows[i].hook;
	return NULL;
}

void *real_hook_of_answer(const void *address)
{
	if (likely(!atomic_load_explicit(&is_full, memory_order_relaxed)))
		return hook_at(address);
	void *hook = hook_in(driver_rows, DRIVER_ROWS, address);
	return hook ? hook : hook_in(nvml_rows, NVML_ROWS, address);
}

static void *hook_of_known(const void *address)
{
	bool is_driver_there = real_find_driver(), is_nvml_there = real_find_nvml();

	if (!address)
		return NULL;
	void *hook = real_hook_of_answer(address);
	if (!hook && is_driver_there && refill("libcuda.so.1", driver_rows, DRIVER_ROWS))
		hook = real_hook_of_answer(address);
	if (!hook && is_nvml_there && refill("libnvidia-ml.so.1", nvml_rows, NVML_ROWS))
		hook = real_hook_of_answer(address);
	return hook;
}

void *real_hook_of_address(const void *address)
{
	void *hook = hook_of_known(address);

	return hook || !address ? hook : unknown_stand_in(address);
}

#define NAME_PLACES 2048 /* a power of two */
static const struct symbol_row *by_name[NAME_PLACES];
static _Atomic bool names_ready;

_Static_assert(DRIVER_ROWS < NAME_PLACES * 3 / 4, "by_name has room for every row");

static void fill_names(void)
{
	if (likely(atomic_load_explicit(&names_ready, memory_order_acquire)))
		return;
	WITH_LOCK(&locks.real_find);
	for (size_t r = 0; r < DRIVER_ROWS && !atomic_load(&names_ready); r++) {
		const struct symbol_row *row = &driver_rows[r];
		size_t i = name_hash(row->name, name_base_length(row->name));
		while (by_name[i % NAME_PLACES])
			i++;
		if (row->hook)
			by_name[i % NAME_PLACES] = row;
	}
	atomic_store_explicit(&names_ready, true, memory_order_release);
}

static const struct symbol_row *row_named(const char *name)
{
	fill_names();
	for (size_t i = name_hash(name, name_base_length(name)); by_name[i % NAME_PLACES]; i++)
		if (text_equal(by_name[i % NAME_PLACES]->name, name))
			return by_name[i % NAME_PLACES];
	return NULL;
}

bool real_hooks_form_of(const char *name)
{
	return known_is_hooked(name_hash(name, name_base_length(name)));
}

static void *hook_of_nvml(const char *name)
{
	for (size_t i = 0; i < NVML_ROWS; i++)
		if (nvml_rows[i].hook && text_equal(nvml_rows[i].name, name))
			return nvml_rows[i].hook;
	return NULL;
}

/*
 * For a driver function that driver_table.h lacks, although another version or stream form of it is hooked, as with
 * cuMemAlloc_v9 and cuMemAlloc_v2. Returns a stand-in (unknown.h) if the driver has the function, otherwise NULL.
 */
static void *hook_of_unknown(const char *name)
{
	struct elf_object driver;

	if (!real_hooks_form_of(name) || !elf_find_object("libcuda.so.1", &driver))
		return NULL;
	void *address = elf_symbol(&driver, name);
	return address && !hook_of_known(address) ? unknown_note(name, address) : NULL;
}

void *real_hook_of_name(const char *name)
{
	if (name[0] == 'c' && name[1] == 'u') {
		const struct symbol_row *row = row_named(name);
		return row ? row->hook : hook_of_unknown(name);
	}
	if (text_begins(name, "nvml"))
		return hook_of_nvml(name);
	return NULL;
}
