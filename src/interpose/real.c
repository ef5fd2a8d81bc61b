#include "interpose/real.h"

#include <stddef.h>

#include "interpose/elf_lookup.h"
#include "interpose/sys.h"
#include "interpose/text.h"
#include "interpose/unknown.h"

struct real_driver real;
struct real_nvml real_nvml;

/* The wrappers, as exported (wrap.c, nvml_wrap.c). */
#define DECLARE_HOOK(symbol, hook, params, args) CUresult symbol params;
#define DECLARE_WORK(symbol, streams, params, args, ...) CUresult symbol params;
DRIVER_TABLE(DECLARE_HOOK, DECLARE_WORK)
#define DECLARE_NVML_HOOK(symbol, hook, params, args) nvmlReturn_t symbol params;
#define DECLARE_NVML_NONE(symbol, params, args) nvmlReturn_t symbol params;
NVML_TABLE(DECLARE_NVML_HOOK, DECLARE_NVML_HOOK, DECLARE_NVML_NONE)

struct symbol_row {
	const char *name;
	void **slot;
	void *hook; /* NULL: called, not hooked */
};

#define ROW_HOOK(symbol, hook, params, args) { #symbol, (void **)&real.symbol, (void *)symbol },
#define ROW_WORK(symbol, streams, params, args, ...) \
	{ #symbol, (void **)&real.symbol, (void *)symbol },
#define ROW_CALL(symbol, params) { #symbol, (void **)&real.symbol, NULL },

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

static struct sys_lock find_lock;
static _Atomic bool driver_found, nvml_found;

/* Holds find_lock. */
static void fill_from(const struct elf_object *object, const struct symbol_row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		__atomic_store_n(rows[i].slot, elf_symbol(object, rows[i].name), __ATOMIC_RELAXED);
}

static bool fill(const char *soname, const struct symbol_row *rows, size_t count,
		 _Atomic bool *found)
{
	struct elf_object object;

	if (likely(atomic_load_explicit(found, memory_order_acquire)))
		return true;
	WITH_LOCK(&find_lock);
	if (atomic_load_explicit(found, memory_order_relaxed))
		return true;
	if (!elf_find_object(soname, &object))
		return false;
	fill_from(&object, rows, count);
	atomic_store_explicit(found, true, memory_order_release);
	return true;
}

/*
 * A program may unload the library and load it again at another place (a probe for a GPU does). True
 * when it has, and the slots are filled anew.
 */
static bool refill(const char *soname, const struct symbol_row *rows, size_t count)
{
	struct elf_object object;

	WITH_LOCK(&find_lock);
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

void real_reset(void)
{
	find_lock = (struct sys_lock){ 0 };
}

static void *hook_in(const struct symbol_row *rows, size_t count, const void *address)
{
	for (size_t i = 0; i < count; i++)
		if (rows[i].hook && *rows[i].slot == address)
			return rows[i].hook;
	return NULL;
}

/* Linear: a few hundred comparisons, and asked a few hundred times in a process's life. */
void *real_hook_of_known(const void *address)
{
	void *hook = NULL;
	bool is_driver_there = real_find_driver(), is_nvml_there = real_find_nvml();

	if (!address)
		return NULL;
	if (is_driver_there)
		hook = hook_in(driver_rows, DRIVER_ROWS, address);
	if (!hook && is_nvml_there)
		hook = hook_in(nvml_rows, NVML_ROWS, address);
	if (!hook && is_driver_there && refill("libcuda.so.1", driver_rows, DRIVER_ROWS))
		hook = hook_in(driver_rows, DRIVER_ROWS, address);
	if (!hook && is_nvml_there && refill("libnvidia-ml.so.1", nvml_rows, NVML_ROWS))
		hook = hook_in(nvml_rows, NVML_ROWS, address);
	return hook;
}

void *real_hook_of_address(const void *address)
{
	void *hook = real_hook_of_known(address);

	return hook || !address ? hook : unknown_stand_in(address);
}

static void *hook_named(const struct symbol_row *rows, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (rows[i].hook && text_equal(rows[i].name, name))
			return rows[i].hook;
	return NULL;
}

bool real_governs_form_of(const char *name)
{
	size_t length = unknown_base_length(name);

	for (size_t i = 0; i < DRIVER_ROWS; i++)
		if (driver_rows[i].hook && text_begins_equal(driver_rows[i].name, name, length) &&
		    unknown_base_length(driver_rows[i].name) == length)
			return true;
	return false;
}

/* A form that is in no row, of a name that is governed in others: noted if this driver has it. */
static void *hook_of_unknown(const char *name)
{
	struct elf_object driver;
	void *address;

	if (!real_governs_form_of(name) || !elf_find_object("libcuda.so.1", &driver))
		return NULL;
	address = elf_symbol(&driver, name);
	return address && !real_hook_of_known(address) ? unknown_note(name, address) : NULL;
}

void *real_hook_of_name(const char *name)
{
	if (name[0] == 'c' && name[1] == 'u') {
		void *hook = hook_named(driver_rows, DRIVER_ROWS, name);
		return hook ? hook : hook_of_unknown(name);
	}
	if (text_begins(name, "nvml"))
		return hook_named(nvml_rows, NVML_ROWS, name);
	return NULL;
}
