/* Shared by store.c, which opens the file and handles transactions, and store_claim.c, which reads and writes the rows. */
#pragma once

#include <sqlite3.h>

#include "base/error.h"

enum statement {
	SQL_BEGIN,
	SQL_COMMIT,
	SQL_ROLLBACK,
	SQL_ADD_CLAIM,
	SQL_ADD_DEVICE,
	SQL_ADD_SLOT,
	SQL_ADD_ORIGINAL,
	SQL_CHANGE_CLAIM,
	SQL_REMOVE_CLAIM,
	SQL_REMOVE_DEVICES,
	SQL_REMOVE_ORIGINAL,
	SQL_READ_CLAIMS,
	SQL_READ_DEVICES,
	SQL_READ_SLOTS,
	SQL_READ_ORIGINAL,
	SQL_COUNT
};

struct store {
	sqlite3 *db;
	sqlite3_stmt *statement[SQL_COUNT];
	char path[256];
};

/* Converts an SQLite error, which must not be SQLITE_OK, to -errno and text. */
int store_fail(struct store *store, int rc, struct error *err);
/* Runs a bound statement to completion and resets it. */
int store_run(struct store *store, enum statement which, struct error *err);

/* preallocated length of the write-ahead log: enough for several hundred transactions; with more, the log grows */
#define STORE_LOG_BYTES (8 << 20)
