#include "failing_vfs.h"

#include <sqlite3.h>
#include <string.h>

struct failing_vfs failing_vfs = { .writes_left = -1, .syncs_left = -1 };

struct file {
	sqlite3_file base;
	sqlite3_file *real; /* behind this struct */
};

static sqlite3_file *real_of(sqlite3_file *file)
{
	return ((struct file *)(void *)file)->real;
}

static int fails(int *left)
{
	if (*left < 0)
		return 0;
	if (*left == 0)
		return 1;
	--*left;
	return 0;
}

static int file_close(sqlite3_file *f)
{
	return real_of(f)->pMethods->xClose(real_of(f));
}

static int file_read(sqlite3_file *f, void *to, int size, sqlite3_int64 at)
{
	return real_of(f)->pMethods->xRead(real_of(f), to, size, at);
}

static int file_write(sqlite3_file *f, const void *from, int size, sqlite3_int64 at)
{
	failing_vfs.writes++;
	if (failing_vfs.torn_left > 0) {
		failing_vfs.torn_left--;
		return SQLITE_CORRUPT;
	}
	return fails(&failing_vfs.writes_left)
		       ? failing_vfs.failure
		       : real_of(f)->pMethods->xWrite(real_of(f), from, size, at);
}

static int file_truncate(sqlite3_file *f, sqlite3_int64 size)
{
	return real_of(f)->pMethods->xTruncate(real_of(f), size);
}

static int file_sync(sqlite3_file *f, int flags)
{
	failing_vfs.syncs++;
	return fails(&failing_vfs.syncs_left) ? failing_vfs.failure
					      : real_of(f)->pMethods->xSync(real_of(f), flags);
}

static int file_size(sqlite3_file *f, sqlite3_int64 *ret)
{
	return real_of(f)->pMethods->xFileSize(real_of(f), ret);
}

static int file_lock(sqlite3_file *f, int lock)
{
	return real_of(f)->pMethods->xLock(real_of(f), lock);
}

static int file_unlock(sqlite3_file *f, int lock)
{
	return real_of(f)->pMethods->xUnlock(real_of(f), lock);
}

static int file_check_lock(sqlite3_file *f, int *ret)
{
	return real_of(f)->pMethods->xCheckReservedLock(real_of(f), ret);
}

static int file_control(sqlite3_file *f, int op, void *argument)
{
	return real_of(f)->pMethods->xFileControl(real_of(f), op, argument);
}

static int file_sector(sqlite3_file *f)
{
	return real_of(f)->pMethods->xSectorSize(real_of(f));
}

static int file_characteristics(sqlite3_file *f)
{
	return real_of(f)->pMethods->xDeviceCharacteristics(real_of(f));
}

/* Version 1: without shared memory, which the store of a single daemon does not need. */
static const sqlite3_io_methods methods = { .iVersion = 1,
					    .xClose = file_close,
					    .xRead = file_read,
					    .xWrite = file_write,
					    .xTruncate = file_truncate,
					    .xSync = file_sync,
					    .xFileSize = file_size,
					    .xLock = file_lock,
					    .xUnlock = file_unlock,
					    .xCheckReservedLock = file_check_lock,
					    .xFileControl = file_control,
					    .xSectorSize = file_sector,
					    .xDeviceCharacteristics = file_characteristics };

static sqlite3_vfs *real_vfs, vfs;

static int open_file(sqlite3_vfs *self, const char *name, sqlite3_file *f, int flags, int *ret_flags)
{
	struct file *file = (struct file *)(void *)f;
	file->real = (sqlite3_file *)(void *)(file + 1);
	int rc = real_vfs->xOpen(real_vfs, name, file->real, flags, ret_flags);
	f->pMethods = file->real->pMethods ? &methods : NULL;
	return rc;
}

void failing_vfs_install(void)
{
	if (real_vfs)
		return;
	real_vfs = sqlite3_vfs_find(NULL);
	vfs = *real_vfs;
	vfs.zName = "failing";
	vfs.xOpen = open_file;
	vfs.szOsFile = (int)sizeof(struct file) + real_vfs->szOsFile;
	sqlite3_vfs_register(&vfs, 1);
}
