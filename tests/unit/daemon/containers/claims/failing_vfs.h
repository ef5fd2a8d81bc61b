/* A disk below SQLite that fails when the test wants: SQLite's own file system with injected faults. */
#pragma once

extern struct failing_vfs {
	int writes_left; /* this many writes succeed, and later ones fail; negative: none fails */
	int syncs_left;  /* the same of syncs */
	int failure;     /* the error of the failing writes: SQLITE_FULL, SQLITE_IOERR_FSYNC */
	int torn_left;   /* this many writes fail before that, because the file is torn */
	int writes, syncs;
} failing_vfs;

/* Makes it the file system of all stores from now on. */
void failing_vfs_install(void);
