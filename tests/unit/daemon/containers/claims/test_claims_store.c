/* The store of claims: invalid files, a second daemon, a disk that fails, and the write-ahead log. */
#include "claims_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/containers/claims/store.h"
#include "failing_vfs.h"

static void store_path(struct fixture *f, char path[128])
{
	snprintf(path, 128, "%s/run/claims.db", f->dir);
}

/* ---- invalid store files ---- */

static void write_file(const char *path, const char *bytes, size_t size)
{
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	fclose(file);
}

static void execute_sql(const char *path, const char *sql)
{
	sqlite3 *db;
	assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
					 "unix"),
			 SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

static void put_noise(const char *path)
{
	static char noise[20000];
	for (size_t i = 0; i < sizeof(noise); i++)
		noise[i] = (char)(i * 7919 >> 3);
	write_file(path, noise, sizeof(noise));
}

static void put_torn_page(const char *path)
{
	int fd = open(path, O_RDWR);
	assert_true(fd >= 0);
	char noise[3000];
	memset(noise, 0xa5, sizeof(noise));
	assert_int_equal(pwrite(fd, noise, sizeof(noise), 4096 + 8), (ssize_t)sizeof(noise));
	close(fd);
}

static void put_other_schema(const char *path)
{
	unlink(path);
	execute_sql(path, "CREATE TABLE song (name TEXT)");
}

static void put_newer_version(const char *path)
{
	execute_sql(path, "PRAGMA user_version = 5");
}

static void put_without_table(const char *path)
{
	execute_sql(path, "DROP TABLE slot");
}

static void put_wrong_value(const char *path)
{
	execute_sql(path, "UPDATE device SET cores_pct = 1000");
}

static void put_wrong_text(const char *path)
{
	execute_sql(path, "UPDATE claim SET on_full = 'sing'");
}

static void put_directory(const char *path)
{
	unlink(path);
	assert_int_equal(mkdir(path, 0700), 0);
}

static void put_truncated(const char *path)
{
	struct stat st;
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(truncate(path, st.st_size / 2), 0);
}

static void put_missing(const char *path)
{
	unlink(path);
}

static unsigned count_set_aside(struct fixture *f)
{
	char pattern[128];
	glob_t found;
	snprintf(pattern, sizeof(pattern), "%s/run/claims.db.bad-*[0-9]", f->dir);
	unsigned count = glob(pattern, 0, NULL, &found) == 0 ? (unsigned)found.gl_pathc : 0;
	globfree(&found);
	return count;
}

/* If the store is invalid, claims are restored from the adopted tenants with all their terms. */
static void test_invalid_store_is_rebuilt_from_tenants(void **state)
{
	static const struct {
		void (*put)(const char *path);
		unsigned set_aside;
	} rows[] = {
		{ put_noise, 1 },         { put_torn_page, 1 },     { put_other_schema, 1 },
		{ put_newer_version, 1 }, { put_without_table, 1 }, { put_wrong_value, 1 },
		{ put_wrong_text, 1 },    { put_directory, 1 },     { put_truncated, 1 },
		{ put_missing, 0 },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char path[128];
		fixture_teardown(state);
		assert_int_equal(fixture_setup(state), 0);
		struct fixture *f = *state;
		struct claim_request request = request_with_all_terms(f);
		struct tenant_terms before = *claim_terms(claim_made(f, &request));
		fixture_stop(f);
		store_path(f, path);
		rows[i].put(path);
		fixture_start(f);
		struct claim *claim = claims_find(f->node->claims, "uid/c");
		if (!claim || !claim->tenant || count_set_aside(f) != rows[i].set_aside)
			fail_msg("row %zu: %s, %u set aside", i, claim ? "claim found" : "no claim",
				 count_set_aside(f));
		assert_same_terms(claim_terms(claim), &before);
		assert_int_equal(claims_counts(f->node->claims).stores_set_aside, rows[i].set_aside);
		claims_must_hold(f);
		/* The claim is in the new store. */
		claims_restart(f);
		assert_same_terms(claim_terms(claims_find(f->node->claims, "uid/c")), &before);
		assert_int_equal(claims_counts(f->node->claims).stores_set_aside, 0);
		claim_released(f, "uid/c");
	}
}

/* A second daemon with the same state directory is refused. */
static void test_second_daemon_is_refused(void **state)
{
	struct fixture *f = *state;
	char path[128];
	struct claim_request request = claim_of(f, "a", 0, 16, 1, -1);
	claim_made(f, &request);
	store_path(f, path);
	pid_t pid = fork();
	if (pid == 0) {
		struct store *store;
		struct error err = { 0 };
		bool is_new;
		_exit(store_open(path, &store, &is_new, &err) != -EBUSY ||
		      !strstr(err.text, "another daemon"));
	}
	int status;
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	claims_must_hold(f);
}

/* ---- a failing disk ---- */

static void reset_disk_faults(void)
{
	failing_vfs.writes_left = failing_vfs.syncs_left = -1;
}

/* The disk is full from each write of an allocation in turn: the claim is refused, and nothing else changes. */
static void test_disk_full_during_allocation(void **state)
{
	struct fixture *f = *state;
	struct claim_request first = claim_of(f, "a", 0, 16, 1, 0);
	struct claim_request second = claim_of(f, "b", 0, 16, 1, 1);
	claim_made(f, &first);
	unsigned refused = 0;
	for (int n = 0;; n++) {
		failing_vfs.failure = SQLITE_FULL;
		failing_vfs.writes_left = n;
		int before = failing_vfs.writes;
		struct error err = { 0 };
		struct claim *claim;
		int r = claims_allocate(f->node->claims, &second, &claim, &err);
		if (r == 0 && failing_vfs.writes - before <= n)
			break;
		reset_disk_faults();
		assert_int_equal(r, -ENOSPC);
		assert_non_null(strstr(err.text, "disk is full"));
		assert_int_equal(claims_count(f->node->claims), 1);
		claims_must_hold(f);
		if (++refused % 2)
			claims_restart(f);
		assert_int_equal(claims_count(f->node->claims), 1);
		second.device[0].card = &f->node->card[0];
	}
	reset_disk_faults();
	assert_true(refused >= 2);
	claims_must_hold(f);
	claims_restart(f);
	assert_int_equal(claims_count(f->node->claims), 2);
	/* A release that cannot be saved fails, and the claim remains. */
	struct error err = { 0 };
	failing_vfs.writes_left = 0;
	assert_int_equal(claims_release(f->node->claims, "b", NULL, &err), -ENOSPC);
	reset_disk_faults();
	assert_non_null(claims_find(f->node->claims, "b"));
	claim_released(f, "b");
	claims_must_hold(f);
}

/* A withdrawn claim ends at once. Its row is deleted with the next transaction that the disk accepts. */
static void test_claim_is_withdrawn_on_full_disk(void **state)
{
	struct fixture *f = *state;
	struct claim_request first = claim_of(f, "a", 0, 16, 1, 0);
	struct claim_request second = claim_of(f, "b", 0, 2000, 1, 1);
	claim_made(f, &first);
	claim_made(f, &second);
	failing_vfs.failure = SQLITE_FULL;
	failing_vfs.writes_left = 0;
	claims_undo(f->node->claims, "b", "its answer was not sent");
	assert_null(claims_find(f->node->claims, "b"));
	claims_reconcile(f->node->claims); /* fails */
	assert_int_equal(claims_counts(f->node->claims).released, 1);
	reset_disk_faults();
	/* Its key, its slot and its memory are free again, in the same transaction. */
	claim_made(f, &second);
	claims_must_hold(f);
	claims_restart(f);
	assert_int_equal(claims_count(f->node->claims), 2);
	claims_must_hold(f);
	/* If no claim follows, the daemon's periodic check deletes the row. */
	failing_vfs.writes_left = 0;
	claims_undo(f->node->claims, "b", "its answer was not sent");
	reset_disk_faults();
	claims_reconcile(f->node->claims);
	claims_restart(f);
	assert_null(claims_find(f->node->claims, "b"));
	assert_int_equal(claims_count(f->node->claims), 1);
}

/* If the disk has no space for a new store, claims are refused with the reason. They succeed once there is space. */
static void test_disk_full_at_first_claim(void **state)
{
	struct fixture *f = *state;
	struct claim_request request = claim_of(f, "a", 0, 16, 1, 0);
	failing_vfs.failure = SQLITE_FULL;
	failing_vfs.writes_left = 0;
	claim_refused(f, &request, ENOSPC, "claims can't be saved");
	assert_int_equal(claims_counts(f->node->claims).refused_store, 1);
	reset_disk_faults();
	claim_made(f, &request);
	claims_must_hold(f);
}

/*
 * The disk gets full at each write in turn while a damaged store is rebuilt, and the daemon ends in that state. Claims stay in
 * force, and are saved once the disk has space.
 */
static void test_disk_full_during_rebuild(void **state)
{
	struct fixture *f = *state;
	char path[128];
	struct claim_request request = request_with_all_terms(f);
	struct tenant_terms before = *claim_terms(claim_made(f, &request));
	store_path(f, path);
	for (int n = 0, writes = 0; n <= writes; n++) {
		fixture_stop(f);
		put_noise(path);
		failing_vfs.failure = SQLITE_FULL;
		failing_vfs.writes_left = n;
		fixture_start(f);
		assert_non_null(claims_find(f->node->claims, "uid/c")->tenant);
		claims_restart(f); /* the next daemon starts in this state */
		assert_non_null(claims_find(f->node->claims, "uid/c")->tenant);
		reset_disk_faults();
		failing_vfs.writes = 0;
		claims_restart(f);
		writes = failing_vfs.writes > writes ? failing_vfs.writes : writes;
		struct claim *claim = claims_find(f->node->claims, "uid/c");
		assert_same_terms(claim_terms(claim), &before);
		assert_true(claim->row > 0);
		claims_must_hold(f);
	}
}

static void test_failed_sync_refuses_claim(void **state)
{
	struct fixture *f = *state;
	struct claim_request first = claim_of(f, "a", 0, 16, 1, 0);
	struct claim_request second = claim_of(f, "b", 0, 16, 1, 1);
	claim_made(f, &first);
	failing_vfs.failure = SQLITE_IOERR_FSYNC;
	failing_vfs.syncs_left = 0;
	claim_refused(f, &second, EIO, "claims.db");
	reset_disk_faults();
	claims_restart(f);
	assert_null(claims_find(f->node->claims, "b"));
	claims_must_hold(f);
	second.device[0].card = &f->node->card[0];
	claim_made(f, &second);
}

/* Counts the claims in the file without its log; -1: no table. Reads a copy: closing the file here would end SQLite's locks. */
static int count_in_file(struct fixture *f)
{
	char path[128], copy[160], command[320];
	sqlite3 *db;
	sqlite3_stmt *statement;
	int count = -1;
	store_path(f, path);
	snprintf(copy, sizeof(copy), "%s/copy.db", f->dir);
	snprintf(command, sizeof(command), "cp %s %s", path, copy);
	assert_int_equal(system(command), 0);
	assert_int_equal(sqlite3_open_v2(copy, &db, SQLITE_OPEN_READWRITE, "unix"), SQLITE_OK);
	if (sqlite3_prepare_v2(db, "SELECT count(*) FROM claim", -1, &statement, NULL) == SQLITE_OK) {
		assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
		count = sqlite3_column_int(statement, 0);
		sqlite3_finalize(statement);
	}
	sqlite3_close(db);
	unlink(copy);
	return count;
}

/* The write-ahead log is copied into the file while the daemon is idle, not after every few allocations. */
static void test_log_is_copied_into_file_when_idle(void **state)
{
	struct fixture *f = *state;
	char key[32];
	for (unsigned i = 0; i < 200; i++) {
		snprintf(key, sizeof(key), "k/%u", i);
		struct claim_request request = claim_of(f, key, 0, 1, 0.1, -1);
		claim_made(f, &request);
	}
	assert_true(count_in_file(f) < 1);
	for (unsigned i = 0; i < 200 && count_in_file(f) != 200; i++)
		assert_int_equal(loop_step(f->node->loop, 100), 0);
	assert_int_equal(count_in_file(f), 200);
}

static off_t log_bytes(struct fixture *f)
{
	char path[128], log[160];
	struct stat st;
	store_path(f, path);
	snprintf(log, sizeof(log), "%s-wal", path);
	return stat(log, &st) == 0 ? st.st_size : -1;
}

/* Commits overwrite the log. If the log grew, each commit would wait for the file system's journal. */
static void test_log_length_is_constant(void **state)
{
	struct fixture *f = *state;
	char key[32];
	off_t before = 0;
	for (unsigned i = 0; i < 400; i++) {
		snprintf(key, sizeof(key), "k/%u", i);
		struct claim_request request = claim_of(f, key, 0, 1, 0.1, (int)(i < 200 ? i : 200));
		claim_made(f, &request);
		if (i == 0)
			before = log_bytes(f);
		assert_true(before >= 1 << 20);
		assert_int_equal(log_bytes(f), before);
		if (i >= 200)
			claim_released(f, key);
		else if (i % 2)
			claims_must_hold(f);
	}
	/* The next daemon ignores data behind the last commit. */
	claims_restart(f);
	assert_int_equal(claims_count(f->node->claims), 200);
	assert_int_equal(log_bytes(f), before);
}

/* claims_setup() on a disk without faults. */
static int setup(void **state)
{
	failing_vfs_install();
	reset_disk_faults();
	return claims_setup(state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_invalid_store_is_rebuilt_from_tenants),
		TEST(test_second_daemon_is_refused),
		TEST(test_disk_full_during_allocation),
		TEST(test_claim_is_withdrawn_on_full_disk),
		TEST(test_disk_full_at_first_claim),
		TEST(test_disk_full_during_rebuild),
		TEST(test_failed_sync_refuses_claim),
		TEST(test_log_is_copied_into_file_when_idle),
		TEST(test_log_length_is_constant),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
