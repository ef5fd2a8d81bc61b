/*
 * A file system in memory for SQLite: a database, its log and its journal, so that a target that gives SQLite a file for each
 * input waits for no kernel, and memory of its own. Names don't matter, locks are granted, and a file may grow to MEMORY_VFS_MOST_BYTES; then the disk is
 * full. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MEMORY_VFS_MOST_BYTES (1 << 20)

/* From now on SQLite's files and memory are here; before its first use. Ends the process where SQLite refuses. */
void memory_vfs_use(void);

/* The database has these bytes, at most MEMORY_VFS_MOST_BYTES; there is no log and no journal. None is open. */
void memory_vfs_set(const uint8_t *data, size_t size);

/* Whether SQLite has given back every file and all memory that it took since memory_vfs_use(). */
bool memory_vfs_is_idle(void);
