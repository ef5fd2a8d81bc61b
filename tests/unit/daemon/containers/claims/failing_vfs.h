/* A disk that fails when the test says so, below SQLite: SQLite's own file system with faults put in. */
#pragma once

extern struct failing_vfs {
	int writes_left; /* so many writes go through, and the rest fails; negative: none fails */
	int syncs_left;  /* the same of syncs */
	int failure;     /* what they fail with: SQLITE_FULL, SQLITE_IOERR_FSYNC */
	int torn_left;   /* so many writes fail before that, because the file is torn */
	int writes, syncs;
} failing_vfs;

/* Makes it the one that stores use from here on. */
void failing_vfs_install(void);
