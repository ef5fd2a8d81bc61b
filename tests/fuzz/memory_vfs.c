#include "memory_vfs.h"

#include <sqlite3.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind { DATABASE, LOG, JOURNAL, KINDS };

static struct file {
	bool is_there;
	size_t size;
	uint8_t bytes[MEMORY_VFS_MOST_BYTES];
} files[KINDS];

struct handle {
	sqlite3_file base; /* first: SQLite's view of it */
	struct file *file;
};

static sqlite3_vfs vfs;
static unsigned open_files;

static struct file *file_of(sqlite3_file *base)
{
	return ((struct handle *)base)->file;
}

/* By the end of its name. */
static struct file *file_named(const char *name)
{
	if (strstr(name, "-wal"))
		return &files[LOG];
	return &files[strstr(name, "-journal") ? JOURNAL : DATABASE];
}

/* ---- a file ---- */

static int file_close(sqlite3_file *base)
{
	open_files--;
	return SQLITE_OK;
}

static int file_read(sqlite3_file *base, void *into, int size, sqlite3_int64 at)
{
	const struct file *file = file_of(base);
	size_t have = (size_t)at < file->size ? file->size - (size_t)at : 0;
	size_t n = have < (size_t)size ? have : (size_t)size;
	if (n)
		memcpy(into, file->bytes + at, n);
	memset((uint8_t *)into + n, 0, (size_t)size - n);
	return n == (size_t)size ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
}

/* What was cut off may still be behind the end. */
static int file_grow(struct file *file, sqlite3_int64 size)
{
	if (size > MEMORY_VFS_MOST_BYTES)
		return SQLITE_FULL;
	if ((size_t)size > file->size) {
		memset(file->bytes + file->size, 0, (size_t)size - file->size);
		file->size = (size_t)size;
	}
	return SQLITE_OK;
}

static int file_write(sqlite3_file *base, const void *from, int size, sqlite3_int64 at)
{
	struct file *file = file_of(base);
	int rc = file_grow(file, at + size);
	if (rc == SQLITE_OK)
		memcpy(file->bytes + at, from, (size_t)size);
	return rc;
}

static int file_truncate(sqlite3_file *base, sqlite3_int64 size)
{
	int rc = file_grow(file_of(base), size);
	if (rc == SQLITE_OK)
		file_of(base)->size = (size_t)size;
	return rc;
}

static int file_sync(sqlite3_file *base, int flags)
{
	return SQLITE_OK;
}

static int file_size(sqlite3_file *base, sqlite3_int64 *ret)
{
	*ret = (sqlite3_int64)file_of(base)->size;
	return SQLITE_OK;
}

static int file_lock(sqlite3_file *base, int level)
{
	return SQLITE_OK;
}

static int file_is_reserved(sqlite3_file *base, int *ret)
{
	*ret = 0;
	return SQLITE_OK;
}

static int file_control(sqlite3_file *base, int op, void *arg)
{
	return SQLITE_NOTFOUND;
}

static int file_sector(sqlite3_file *base)
{
	return 512;
}

static int file_traits(sqlite3_file *base)
{
	return 0;
}

static const sqlite3_io_methods methods = {
	.iVersion = 1, /* without shared memory: the log needs none, as its one reader has the file alone */
	.xClose = file_close,
	.xRead = file_read,
	.xWrite = file_write,
	.xTruncate = file_truncate,
	.xSync = file_sync,
	.xFileSize = file_size,
	.xLock = file_lock,
	.xUnlock = file_lock,
	.xCheckReservedLock = file_is_reserved,
	.xFileControl = file_control,
	.xSectorSize = file_sector,
	.xDeviceCharacteristics = file_traits,
};

/* ---- memory ---- */

/*
 * SQLite is not what is tried, and half of an input's time would be spent on guarding its many small blocks. They are taken from
 * the beginning to the end of one piece, which begins anew when all that an input took is given back.
 */
static struct {
	_Alignas(max_align_t) uint8_t bytes[16 << 20];
	size_t used, blocks;
	size_t own_used, own_blocks; /* what SQLite has as long as the process lives */
} heap;

/* A block's size stands before it. */
#define BLOCK_HEAD sizeof(max_align_t)

static int heap_size(void *block)
{
	int size;
	memcpy(&size, (uint8_t *)block - BLOCK_HEAD, sizeof(size));
	return size;
}

static int heap_round(int size)
{
	return (int)(((size_t)size + BLOCK_HEAD - 1) / BLOCK_HEAD * BLOCK_HEAD);
}

static void *heap_take(int size)
{
	size = heap_round(size);
	if ((size_t)size + BLOCK_HEAD > sizeof(heap.bytes) - heap.used)
		return NULL;
	uint8_t *block = heap.bytes + heap.used + BLOCK_HEAD;
	memcpy(block - BLOCK_HEAD, &size, sizeof(size));
	heap.used += (size_t)size + BLOCK_HEAD;
	heap.blocks++;
	return block;
}

static void heap_give(void *block)
{
	if (block && --heap.blocks == heap.own_blocks)
		heap.used = heap.own_used;
}

static void *heap_resize(void *block, int size)
{
	int have = heap_size(block);
	if (size <= have)
		return block;
	void *other = heap_take(size);
	if (!other)
		return NULL;
	memcpy(other, block, (size_t)have);
	heap_give(block);
	return other;
}

static int heap_init(void *data)
{
	return SQLITE_OK;
}

static void heap_end(void *data)
{
}

static const sqlite3_mem_methods memory = { heap_take,  heap_give, heap_resize, heap_size,
					    heap_round, heap_init, heap_end,    NULL };

/* ---- all of them ---- */

static int vfs_open(sqlite3_vfs *self, const char *name, sqlite3_file *base, int flags,
		    int *ret_flags)
{
	struct handle *handle = (struct handle *)base;
	handle->base.pMethods = NULL;
	/* Others are in memory as it is: temp_store. */
	if (!name)
		return SQLITE_CANTOPEN;
	struct file *file = file_named(name);
	if (!file->is_there && !(flags & SQLITE_OPEN_CREATE))
		return SQLITE_CANTOPEN;
	file->is_there = true;
	*handle = (struct handle){ .base.pMethods = &methods, .file = file };
	open_files++;
	if (ret_flags)
		*ret_flags = flags;
	return SQLITE_OK;
}

static int vfs_delete(sqlite3_vfs *self, const char *name, int sync)
{
	file_named(name)->is_there = false;
	file_named(name)->size = 0;
	return SQLITE_OK;
}

static int vfs_access(sqlite3_vfs *self, const char *name, int flags, int *ret)
{
	*ret = file_named(name)->is_there;
	return SQLITE_OK;
}

static int vfs_full_path(sqlite3_vfs *self, const char *name, int size, char *ret)
{
	return snprintf(ret, (size_t)size, "%s", name) < size ? SQLITE_OK : SQLITE_CANTOPEN;
}

/* An input does the same whenever it comes. */
static int vfs_randomness(sqlite3_vfs *self, int size, char *ret)
{
	memset(ret, 0x5a, (size_t)size);
	return size;
}

void memory_vfs_use(void)
{
	if (sqlite3_config(SQLITE_CONFIG_MALLOC, &memory) != SQLITE_OK ||
	    sqlite3_config(SQLITE_CONFIG_SINGLETHREAD) != SQLITE_OK ||
	    sqlite3_initialize() != SQLITE_OK)
		abort();
	const sqlite3_vfs *usual = sqlite3_vfs_find(NULL);
	if (!usual)
		abort();
	vfs = *usual;
	vfs.pNext = NULL;
	vfs.zName = "memory";
	vfs.szOsFile = sizeof(struct handle);
	vfs.xOpen = vfs_open;
	vfs.xDelete = vfs_delete;
	vfs.xAccess = vfs_access;
	vfs.xFullPathname = vfs_full_path;
	vfs.xRandomness = vfs_randomness;
	if (sqlite3_vfs_register(&vfs, 1) != SQLITE_OK)
		abort();
	heap.own_used = heap.used;
	heap.own_blocks = heap.blocks;
}

void memory_vfs_set(const uint8_t *data, size_t size)
{
	if (open_files || size > MEMORY_VFS_MOST_BYTES)
		abort();
	for (enum kind kind = DATABASE; kind < KINDS; kind++) {
		files[kind].is_there = false;
		files[kind].size = 0;
	}
	files[DATABASE].is_there = true;
	files[DATABASE].size = size;
	if (size)
		memcpy(files[DATABASE].bytes, data, size);
}

bool memory_vfs_is_idle(void)
{
	return !open_files && heap.blocks == heap.own_blocks;
}
