#include "daemon/containers/claims/store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "daemon/containers/claims/store_inside.h"

#define APPLICATION_ID 1634495604 /* the bytes "allt", by which our files are recognized */
/* A commit copies the log to the file if the log has this many pages. Several hundred allocations fill them. */
#define LOG_MOST_PAGES 2000

/* locking_mode = EXCLUSIVE: only one daemon can use the store, and SQLite's log then needs no shared-memory file. */
static const char open_sql[] = "PRAGMA locking_mode = EXCLUSIVE;"
			       "PRAGMA trusted_schema = OFF;"
			       "PRAGMA foreign_keys = ON;"
			       "PRAGMA temp_store = MEMORY;"
			       "PRAGMA synchronous = FULL;"
			       "PRAGMA journal_size_limit = 8388608;";

/* The table of original terms: for each claim that an override or a user has changed, its terms before the change. */
#define ASKED_SQL \
	"CREATE TABLE IF NOT EXISTS asked (" \
	" claim INTEGER NOT NULL REFERENCES claim ON DELETE CASCADE," \
	" place INTEGER NOT NULL," \
	" on_full TEXT NOT NULL," \
	" memory_bytes INTEGER," \
	" reserve_bytes INTEGER NOT NULL," \
	" cores_pct REAL NOT NULL," \
	" cores_limit_pct REAL," \
	" priority INTEGER NOT NULL DEFAULT 0," \
	" PRIMARY KEY (claim, place)) STRICT, WITHOUT ROWID;"

static const char schema_sql[] = "BEGIN IMMEDIATE;"
				 "CREATE TABLE IF NOT EXISTS claim ("
				 " id INTEGER PRIMARY KEY,"
				 " key TEXT NOT NULL UNIQUE,"
				 " tenant TEXT NOT NULL UNIQUE,"
				 " name TEXT NOT NULL UNIQUE,"
				 " made_s INTEGER NOT NULL,"
				 " uid INTEGER NOT NULL,"
				 " while_wanted INTEGER NOT NULL,"
				 " uncontrolled INTEGER NOT NULL,"
				 " priority INTEGER NOT NULL,"
				 " on_full TEXT NOT NULL,"
				 " swap_arena_bytes INTEGER NOT NULL,"
				 " elastic INTEGER NOT NULL,"
				 " space_group TEXT NOT NULL DEFAULT '') STRICT;"
				 "CREATE TABLE IF NOT EXISTS device ("
				 " claim INTEGER NOT NULL REFERENCES claim ON DELETE CASCADE,"
				 " place INTEGER NOT NULL,"
				 " card TEXT NOT NULL,"
				 " memory_bytes INTEGER," /* NULL: the claim promises no memory */
				 " reserve_bytes INTEGER NOT NULL,"
				 " cores_pct REAL NOT NULL,"
				 " cores_limit_pct REAL," /* NULL: follows cores_pct */
				 " PRIMARY KEY (claim, place),"
				 " UNIQUE (claim, card)) STRICT, WITHOUT ROWID;"
				 "CREATE TABLE IF NOT EXISTS slot ("
				 " card TEXT NOT NULL,"
				 " slot INTEGER NOT NULL,"
				 " claim INTEGER NOT NULL REFERENCES claim ON DELETE CASCADE,"
				 " PRIMARY KEY (card, slot)) STRICT, WITHOUT ROWID;" ASKED_SQL
				 "CREATE INDEX IF NOT EXISTS slot_claim ON slot (claim);"
				 "PRAGMA application_id = 1634495604;"
				 "COMMIT;";

/* Marks a new store as filled: without the mark, claims may be missing in the file. */
static const char filled_sql[] = "PRAGMA user_version = 4;";
/* Schemas before 4 lack the name of the group in which a tenant shares a card by space. */
#define GROUP_SQL \
	"ALTER TABLE claim ADD COLUMN space_group TEXT NOT NULL DEFAULT '';" \
	"PRAGMA user_version = 4;"
/* In schema 2, `asked` has no priority: only claims with the default priority, 0, could be overridden then. */
static const char *const upgrade_sql[STORE_SCHEMA] = {
	[1] = "BEGIN IMMEDIATE;" ASKED_SQL GROUP_SQL "COMMIT;",
	[2] = "BEGIN IMMEDIATE; ALTER TABLE asked ADD COLUMN priority INTEGER NOT NULL DEFAULT "
	      "0;" GROUP_SQL "COMMIT;",
	[3] = "BEGIN IMMEDIATE;" GROUP_SQL "COMMIT;",
};
_Static_assert(APPLICATION_ID == 1634495604 && STORE_SCHEMA == 4 && STORE_LOG_BYTES == 8388608,
	       "as the texts above have it");

static const char *const statement_sql[SQL_COUNT] = {
	[SQL_BEGIN] = "BEGIN IMMEDIATE",
	[SQL_COMMIT] = "COMMIT",
	[SQL_ROLLBACK] = "ROLLBACK",
	[SQL_ADD_CLAIM] =
		"INSERT INTO claim (key, tenant, name, made_s, uid, while_wanted, uncontrolled,"
		" priority, on_full, swap_arena_bytes, elastic, space_group)"
		" VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
	[SQL_ADD_DEVICE] = "INSERT INTO device (claim, place, card, memory_bytes, reserve_bytes,"
			   " cores_pct, cores_limit_pct) VALUES (?, ?, ?, ?, ?, ?, ?)",
	[SQL_ADD_SLOT] = "INSERT INTO slot (card, slot, claim) VALUES (?, ?, ?)",
	[SQL_ADD_ORIGINAL] = "INSERT INTO asked (claim, place, on_full, memory_bytes, reserve_bytes,"
			     " cores_pct, cores_limit_pct, priority) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
	[SQL_CHANGE_CLAIM] = "UPDATE claim SET key = ?, name = ?, priority = ?, elastic = ?, "
			     "on_full = ? WHERE id = ?",
	[SQL_REMOVE_CLAIM] = "DELETE FROM claim WHERE id = ?",
	[SQL_REMOVE_DEVICES] = "DELETE FROM device WHERE claim = ?",
	[SQL_REMOVE_ORIGINAL] = "DELETE FROM asked WHERE claim = ?",
	[SQL_READ_CLAIMS] = "SELECT id, key, tenant, name, made_s, uid, while_wanted, uncontrolled,"
			    " priority, on_full, swap_arena_bytes, elastic, space_group"
			    " FROM claim ORDER BY id",
	[SQL_READ_DEVICES] = "SELECT place, card, memory_bytes, reserve_bytes, cores_pct,"
			     " cores_limit_pct FROM device WHERE claim = ? ORDER BY place",
	[SQL_READ_SLOTS] = "SELECT card, slot FROM slot WHERE claim = ?",
	[SQL_READ_ORIGINAL] = "SELECT place, on_full, memory_bytes, reserve_bytes, cores_pct,"
			      " cores_limit_pct, priority FROM asked WHERE claim = ? ORDER BY place",
};

static int errno_of(struct store *store, int rc)
{
	int system = store->db ? sqlite3_system_errno(store->db) : 0;
	switch (rc & 0xff) {
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB: return EBADMSG;
	case SQLITE_CONSTRAINT: return EEXIST;
	case SQLITE_BUSY:
	case SQLITE_LOCKED: return EBUSY;
	case SQLITE_FULL: return ENOSPC;
	case SQLITE_READONLY: return EROFS;
	case SQLITE_NOMEM: return ENOMEM;
	case SQLITE_PERM: return EACCES;
	case SQLITE_CANTOPEN: return system ? system : EACCES;
	default: return system ? system : EIO;
	}
}

int store_fail(struct store *store, int rc, struct error *err)
{
	int code = errno_of(store, rc);
	const char *says = store->db ? sqlite3_errmsg(store->db) : sqlite3_errstr(rc);
	switch (code) {
	case ENOSPC:
		return error_set(err, code, "%s: the disk is full: free some space on it",
				 store->path);
	case EBUSY:
		return error_set(err, code,
				 "%s: another daemon has this file open: end that "
				 "daemon",
				 store->path);
	case EBADMSG:
		return error_set(err, code, "%s: damaged, or not a store of claims: %s",
				 store->path, says);
	default: return error_set(err, code, "%s: %s", store->path, says);
	}
}

int store_run(struct store *store, enum statement which, struct error *err)
{
	int rc = sqlite3_step(store->statement[which]);
	int r = rc == SQLITE_DONE || rc == SQLITE_ROW ? 0 : store_fail(store, rc, err);
	sqlite3_reset(store->statement[which]);
	return r;
}

static int execute(struct store *store, const char *sql, struct error *err)
{
	int rc = sqlite3_exec(store->db, sql, NULL, NULL, NULL);
	return rc == SQLITE_OK ? 0 : store_fail(store, rc, err);
}

/* Runs `sql`. *ret is the first column of the first row as text, or "" without a row. */
static int query_text(struct store *store, const char *sql, char *ret, size_t size,
		      struct error *err)
{
	sqlite3_stmt *statement;
	int rc = sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL);
	if (rc == SQLITE_OK) {
		rc = sqlite3_step(statement);
		const unsigned char *text = rc == SQLITE_ROW ? sqlite3_column_text(statement, 0)
							     : NULL;
		snprintf(ret, size, "%s", text ? (const char *)text : "");
	}
	int r = rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : store_fail(store, rc, err);
	sqlite3_finalize(statement);
	return r;
}

static int query_int(struct store *store, const char *sql, long *ret, struct error *err)
{
	char text[32];
	int r = query_text(store, sql, text, sizeof(text), err);
	if (r >= 0)
		*ret = strtol(text, NULL, 10);
	return r;
}

/* Returns the schema (above 0), 0 if the file is empty or was never filled, or -EBADMSG if store_open() cannot use it. */
static int read_schema(struct store *store, struct error *err)
{
	long application = 0, version = 0, tables = 0;
	char verdict[128];
	int r = query_int(store, "PRAGMA application_id", &application, err);
	if (r >= 0)
		r = query_int(store, "PRAGMA user_version", &version, err);
	if (r >= 0)
		r = query_int(store, "SELECT count(*) FROM sqlite_master", &tables, err);
	if (r < 0)
		return r;
	if (!application && !version && !tables)
		return 0;
	if (application != APPLICATION_ID)
		return error_set(err, EBADMSG, "%s: is another program's database", store->path);
	if (version < 0 || version > STORE_SCHEMA)
		return error_set(
			err, EBADMSG,
			"%s: has schema %ld, and this allotd knows up to %d: a newer allotd wrote "
			"it",
			store->path, version, STORE_SCHEMA);
	r = query_text(store, "PRAGMA quick_check(1)", verdict, sizeof(verdict), err);
	if (r >= 0 && strcmp(verdict, "ok") != 0)
		return error_set(err, EBADMSG, "%s: damaged: %s", store->path, verdict);
	return r < 0 ? r : (int)version;
}

static int use_wal(struct store *store, struct error *err)
{
	char mode[32];
	int r = query_text(store, "PRAGMA journal_mode = WAL", mode, sizeof(mode), err);
	if (r >= 0 && strcmp(mode, "wal") != 0)
		return error_set(
			err, EOPNOTSUPP,
			"%s: SQLite can't keep a write-ahead log on this file system, and stays "
			"in mode '%s': set state_dir to a directory on another file system",
			store->path, mode);
	return r;
}

static int prepare(struct store *store, struct error *err)
{
	for (unsigned i = 0; i < SQL_COUNT; i++) {
		int rc = sqlite3_prepare_v3(store->db, statement_sql[i], -1,
					    SQLITE_PREPARE_PERSISTENT, &store->statement[i], NULL);
		/* SQLITE_ERROR here: the file has our schema number, but not our tables. */
		if (rc == SQLITE_ERROR)
			return error_set(err, EBADMSG,
					 "%s: another program has changed the tables in this "
					 "database, so allotd can't use it: %s",
					 store->path, sqlite3_errmsg(store->db));
		if (rc != SQLITE_OK)
			return store_fail(store, rc, err);
	}
	return 0;
}

/* Accepts only a plain file or a missing file: opening a FIFO or a device might block. */
static int check_file(const char *path, struct error *err)
{
	struct stat st;
	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : error_set_errno(err, errno, "%s", path);
	return S_ISREG(st.st_mode) ? 0 : error_set(err, EBADMSG, "%s: not a plain file", path);
}

static int open_database(struct store *store, bool *ret_is_new, struct error *err)
{
	int r = check_file(store->path, err);
	if (r < 0)
		return r;
	int rc = sqlite3_open_v2(store->path, &store->db,
				 SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX |
					 SQLITE_OPEN_NOFOLLOW,
				 NULL);
	if (rc != SQLITE_OK)
		return store_fail(store, rc, err);
	sqlite3_extended_result_codes(store->db, 1);
	sqlite3_wal_autocheckpoint(store->db, LOG_MOST_PAGES);
	r = execute(store, open_sql, err);
	if (r >= 0)
		r = read_schema(store, err);
	if (r < 0)
		return r;
	int schema = r;
	*ret_is_new = schema == 0;
	r = use_wal(store, err);
	if (r >= 0 && schema < STORE_SCHEMA)
		r = execute(store, schema ? upgrade_sql[schema] : schema_sql, err);
	return r < 0 ? r : prepare(store, err);
}

int store_open(const char *path, struct store **ret, bool *ret_is_new, struct error *err)
{
	bool is_new = false;
	struct store *store = calloc(1, sizeof(*store));
	if (!store)
		return error_set_errno(err, ENOMEM, "%s", path);
	if ((size_t)snprintf(store->path, sizeof(store->path), "%s", path) >= sizeof(store->path)) {
		free(store);
		return error_set(err, ENAMETOOLONG,
				 "%s: this path must have at most %zu bytes: use a shorter state_dir",
				 path, sizeof(store->path) - 1);
	}
	int r = open_database(store, &is_new, err);
	if (r < 0) {
		store_close(store);
		return r;
	}
	*ret = store;
	*ret_is_new = is_new;
	return 0;
}

struct store *store_close(struct store *store)
{
	if (!store)
		return NULL;
	for (unsigned i = 0; i < SQL_COUNT; i++)
		sqlite3_finalize(store->statement[i]);
	sqlite3_close(store->db);
	free(store);
	return NULL;
}

int store_begin(struct store *store, struct error *err)
{
	return store_run(store, SQL_BEGIN, err);
}

int store_commit(struct store *store, struct error *err)
{
	return store_run(store, SQL_COMMIT, err);
}

void store_rollback(struct store *store)
{
	/* If no transaction is open, SQLite has already rolled back by itself, for example on a full disk. */
	if (!sqlite3_get_autocommit(store->db))
		store_run(store, SQL_ROLLBACK, NULL);
}

int store_checkpoint(struct store *store, struct error *err)
{
	int rc = sqlite3_wal_checkpoint_v2(store->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
	return rc == SQLITE_OK ? 0 : store_fail(store, rc, err);
}

int store_set_filled(struct store *store, struct error *err)
{
	return execute(store, filled_sql, err);
}

int store_set_aside(const char *path, char *ret_name, size_t size, struct error *err)
{
	static const char *const parts[] = { "-wal", "-journal" };
	char from[300], to[300];
	if ((size_t)snprintf(ret_name, size, "%s.bad-%lld", path, (long long)time(NULL)) >= size)
		return error_set(err, ENAMETOOLONG,
				 "%s with .bad-TIME at the end is too long for a path: use "
				 "a shorter state_dir",
				 path);
	if (rename(path, ret_name) < 0)
		return error_set_errno(err, errno, "rename %s to %s", path, ret_name);
	/* Rename the log too, so that a new store does not use the old log. */
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		snprintf(from, sizeof(from), "%s%s", path, parts[i]);
		snprintf(to, sizeof(to), "%s%s", ret_name, parts[i]);
		if (rename(from, to) < 0 && errno != ENOENT)
			return error_set_errno(err, errno, "rename %s to %s", from, to);
	}
	snprintf(from, sizeof(from), "%s-shm", path);
	unlink(from);
	return 0;
}
