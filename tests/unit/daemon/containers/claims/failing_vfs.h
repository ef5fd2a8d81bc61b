/* SQLite's own file system (VFS) with faults that the test injects. */
#pragma once

extern struct failing_vfs {
	int writes_left; /* this many writes succeed, and later ones fail; negative: none fails */
	int syncs_left;  /* the same for syncs */
	int failure;     /* the error of the failing writes: SQLITE_FULL, SQLITE_IOERR_FSYNC */
	int torn_left;   /* the next this many writes fail with SQLITE_CORRUPT, as in a torn file */
	int writes, syncs;
} failing_vfs;

/* Makes this VFS the file system of all stores that are opened from now on. */
void failing_vfs_install(void);
