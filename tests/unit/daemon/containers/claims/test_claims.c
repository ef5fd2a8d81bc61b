/* Claims: allocation, release, and their state after a restart, a full disk and a torn file. */
#include "claims_fixture.h"

#include <limits.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "failing_vfs.h"
#include "daemon/containers/claims/store.h"

static void store_path(struct fixture *f, char path[128])
{
	snprintf(path, 128, "%s/run/claims.db", f->dir);
}

static void release(struct fixture *f, const char *key)
{
	struct error err = { 0 };
	if (claims_release(f->node->claims, key, "by the test", &err) < 0)
		fail_msg("%s", err.text);
	assert_null(claims_find(f->node->claims, key));
}

static void test_made_and_released(void **state)
{
	struct fixture *f = *state;
	char path[NODE_PATH_MAX];
	struct stat st;
	struct claim_request request = claim_of(f, "pod-1/main", 0, 1024, 30, 3);
	struct claim *claim = claim_made(f, &request);
	const struct tenant_terms *terms = claim_terms(claim);
	assert_string_equal(terms->name, "pod-1-main");
	assert_string_equal(terms->claim.key, "pod-1/main");
	assert_int_equal(terms->device[0].promise.quota_bytes, GIB);
	assert_true(slots_has(&terms->device[0].slots, 3));
	assert_int_equal(slots_count(&terms->device[0].slots), 1);
	assert_string_equal(claim_uuid(claim, 0), f->node->card[0].info.uuid_text);
	assert_ptr_equal(claims_of_tenant(f->node->claims, claim->tenant), claim);
	/* Any user who has the directory mounted may use the socket; no other can reach it. */
	tenant_path(claim->tenant, "allot.sock", path);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0666);
	tenant_dir_path(f->node, TENANT_PLACE_CLAIM, NULL, NULL, path);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	int pid = client_spawn(f, claim->tenant, 0, NULL);
	claims_must_hold(f);
	release(f, "pod-1/main");
	/* Its tenant ends with its processes, and is no claim's after a restart. */
	assert_int_equal(f->node->tenant_count, 1);
	struct error err = { 0 };
	assert_int_equal(claims_release(f->node->claims, "pod-1/main", NULL, &err), -ENOENT);
	struct claims_counts counts = claims_counts(f->node->claims);
	assert_int_equal(counts.made, 1);
	assert_int_equal(counts.released, 1);
	fixture_stop(f);
	fixture_start(f);
	assert_int_equal(f->node->tenant_count, 1);
	assert_null(claims_find(f->node->claims, "pod-1/main"));
	claims_must_hold(f);
	client_kill(pid);
	fixture_until(f, f->node->tenant_count == 0);
	claims_must_hold(f);
}

static void test_names(void **state)
{
	static const struct {
		const char *key, *wish, *name;
	} rows[] = {
		{ "a/b", "web", "web" },
		{ "a/c", "web", "web-" }, /* and an id */
		{ "a/d", "_x y", "cx-y" },
		{ "a/e", "", "c" },
		{ "a/f", "0123456789012345678901234567890123456789012345678901234567890123456789",
		  "012345678901234567890123456789012345678901234567890123-" },
	};
	struct fixture *f = *state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct claim_request request = claim_of(f, rows[i].key, 0, 16, 1, -1);
		request.tenant = rows[i].wish;
		const char *name = claim_terms(claim_made(f, &request))->name;
		if (strncmp(name, rows[i].name, strlen(rows[i].name)) != 0)
			fail_msg("'%s' became '%s', not '%s...'", rows[i].wish, name, rows[i].name);
		assert_true(strlen(name) < REGION_NAME_MAX);
	}
	claims_must_hold(f);
}

static void test_refused(void **state)
{
	struct fixture *f = *state;
	char long_key[CLAIM_KEY_MAX + 1];
	f->node->config.refuse_overcommit = true;
	struct claim_request first = claim_of(f, "a", 0, 5 * 1024, 60, 0);
	claim_made(f, &first);
	struct claim_request r = claim_of(f, "a", 1, 1, 1, -1);
	claim_refused(f, &r, EEXIST, "already exists");
	r = claim_of(f, "b", 0, 4 * 1024, 1, 1);
	claim_refused(f, &r, ENOSPC, "at most 3 GiB (3072MiB) is unpromised");
	r = claim_of(f, "b", 0, 1, 41, 1);
	claim_refused(f, &r, ENOSPC, "at most 40");
	r = claim_of(f, "b", 0, 1, 1, 0);
	claim_refused(f, &r, EEXIST, "-0 belongs to claim 'a'");
	r = claim_of(f, "", 0, 1, 1, 1);
	claim_refused(f, &r, EINVAL, "key");
	r = claim_of(f, "a b", 0, 1, 1, 1);
	claim_refused(f, &r, EINVAL, "key");
	memset(long_key, 'k', CLAIM_KEY_MAX);
	long_key[CLAIM_KEY_MAX] = '\0';
	r = claim_of(f, long_key, 0, 1, 1, 1);
	claim_refused(f, &r, EINVAL, "key");
	r = claim_of(f, "b", 0, 0, 1, 1);
	claim_refused(f, &r, EINVAL, "memory_bytes (--memory) 0");
	r = claim_of(f, "b", 0, 1, 1, 1);
	r.device_count = 0;
	claim_refused(f, &r, EINVAL, "1 to 16");
	r.device_count = 2;
	claim_refused(f, &r, ENODEV, "one of its GPUs is not on this node");
	r.device[1] = r.device[0];
	claim_refused(f, &r, EINVAL, "twice");
	claims_must_hold(f);
	struct claims_counts counts = claims_counts(f->node->claims);
	assert_int_equal(counts.refused_full, 2);
	assert_int_equal(counts.refused_request, 9);
	assert_int_equal(counts.refused_store + counts.refused_other, 0);
}

static void test_no_control(void **state)
{
	struct fixture *f = *state;
	struct claim_request request = claim_of(f, "a", 0, 16, 1, -1);
	request.wants_no_control = true;
	assert_false(claim_terms(claim_made(f, &request))->claim.is_uncontrolled);
	assert_int_equal(claims_counts(f->node->claims).control_refused, 1);
	f->node->config.allow_disable_control = true;
	request.key = "b";
	assert_true(claim_terms(claim_made(f, &request))->claim.is_uncontrolled);
	claims_restart(f);
	assert_false(claim_terms(claims_find(f->node->claims, "a"))->claim.is_uncontrolled);
	assert_true(claim_terms(claims_find(f->node->claims, "b"))->claim.is_uncontrolled);
}

/* Its tenant goes by no connection's end, and by no request but its own. */
static void test_it_stays(void **state)
{
	struct fixture *f = *state;
	struct claim_request request = claim_of(f, "cdi/a", 0, 16, 1, -1);
	request.tenant = "a";
	claim_made(f, &request);
	fixture_refused(f, "{\"version\":1,\"op\":\"remove\",\"name\":\"a\"}", EBUSY, "cdi/a");
	fixture_refused(f, "{\"version\":1,\"op\":\"create\",\"name\":\"a\"}", EEXIST, "in use");
	json_decref(fixture_ok(f, "{\"version\":1,\"op\":\"attach\",\"name\":\"a\"}"));
	session_end(&f->session);
	fixture_turn(f, 20);
	assert_non_null(node_find_tenant(f->node, "a"));
	claims_must_hold(f);
}

static void run(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void run(const char *format, ...)
{
	char command[512];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(command, sizeof(command), format, arguments);
	va_end(arguments);
	assert_int_equal(system(command), 0);
}

/* ---- restarts ---- */

static void assert_same_terms(const struct tenant_terms *a, const struct tenant_terms *b)
{
	assert_string_equal(a->id, b->id);
	assert_string_equal(a->name, b->name);
	assert_int_equal(a->uid, b->uid);
	assert_int_equal(a->priority, b->priority);
	assert_int_equal(a->on_full, b->on_full);
	assert_int_equal(a->elastic, b->elastic);
	assert_memory_equal(&a->claim, &b->claim, sizeof(a->claim));
	assert_int_equal(a->device_count, b->device_count);
	for (unsigned i = 0; i < a->device_count; i++) {
		assert_memory_equal(&a->device[i].slots, &b->device[i].slots, sizeof(struct slots));
		const struct promise *p = &a->device[i].promise, *q = &b->device[i].promise;
		assert_int_equal(p->quota_bytes, q->quota_bytes);
		assert_int_equal(p->memory_given, q->memory_given);
		assert_true(p->cores_pct >= q->cores_pct && p->cores_pct <= q->cores_pct);
		assert_true(p->limit_pct >= q->limit_pct && p->limit_pct <= q->limit_pct);
		assert_int_equal(p->limit_given, q->limit_given);
	}
}

static struct claim_request full_request(struct fixture *f)
{
	struct claim_request request = claim_of(f, "uid/c", 1, 1000, 12.5, 255);
	slots_add(&request.device[0].slots, 64);
	request.device[0].terms.has_limit = true;
	request.device[0].terms.limit_pct = 75;
	request.device_count = 2;
	request.device[1].card = &f->node->card[0]; /* the unpromised memory */
	request.uid = 1234;
	request.priority = -7;
	request.elastic = ELASTIC_CHOSEN_OFF;
	request.while_wanted = true;
	return request;
}

static void test_over_a_restart(void **state)
{
	struct fixture *f = *state;
	struct claim_request request = full_request(f);
	struct claim *claim = claim_made(f, &request);
	struct tenant_terms before = *claim_terms(claim);
	uint64_t made_s = claim->made_s;
	claims_restart(f);
	claim = claims_find(f->node->claims, "uid/c");
	assert_non_null(claim);
	assert_same_terms(claim_terms(claim), &before);
	assert_int_equal(claim->made_s, made_s);
	assert_int_equal(claims_count(f->node->claims), 1);
	claims_must_hold(f);
}

/* The state after a reboot: the store, and no tenants in the run directory. */
static void test_over_a_reboot(void **state)
{
	struct fixture *f = *state;
	struct claim_request request = full_request(f);
	struct tenant_terms before = *claim_terms(claim_made(f, &request));
	fixture_stop(f);
	run("rm -r %s/run/claims %s/run/tenants", f->dir, f->dir);
	fixture_start(f);
	struct claim *claim = claims_find(f->node->claims, "uid/c");
	assert_non_null(claim);
	assert_same_terms(claim_terms(claim), &before);
	struct client c;
	client_register(f, client_connect(claim->tenant), 0, &c);
	assert_int_equal(c.reply.status, 0);
	client_close(&c);
	claims_must_hold(f);
}

static void test_changes_are_written(void **state)
{
	struct fixture *f = *state;
	struct claim_request request = claim_of(f, "cdi/a", 0, 1024, 10, 7);
	request.tenant = "a";
	claim_made(f, &request);
	json_decref(fixture_ok(f, "{\"version\":1,\"op\":\"set\",\"name\":\"a\",\"priority\":5,"
				  "\"elastic\":true,\"devices\":[{\"memory_bytes\":2147483648,"
				  "\"cores_pct\":20,\"cores_limit_pct\":40}]}"));
	struct tenant_terms before = node_find_tenant(f->node, "a")->terms;
	fixture_stop(f);
	run("rm -r %s/run/claims", f->dir);
	fixture_start(f);
	assert_same_terms(&node_find_tenant(f->node, "a")->terms, &before);
	assert_int_equal(before.device[0].promise.quota_bytes, 2 * GIB);
	claims_must_hold(f);
}

/* A missing card: the claim waits for it, and no other claim gets its slots or its key. */
static void test_a_card_is_gone(void **state)
{
	struct fixture *f = *state;
	struct claim_request request = claim_of(f, "a", 1, 1024, 10, 7);
	struct claim_request other = claim_of(f, "b", 0, 1024, 10, 7);
	struct tenant_terms before = *claim_terms(claim_made(f, &request));
	claim_made(f, &other);
	fixture_stop(f);
	fake_gpu.count = 1;
	fixture_start(f);
	struct claim *claim = claims_find(f->node->claims, "a");
	assert_non_null(claim);
	assert_null(claim->tenant);
	assert_non_null(strstr(claim_parked_reason(claim), "000000000002 is not on this node"));
	assert_string_equal(claim_uuid(claim, 0), "GPU-00000000-0000-0000-0000-000000000002");
	assert_non_null(claims_find(f->node->claims, "b")->tenant);
	request = claim_of(f, "a", 0, 1, 1, -1);
	claim_refused(f, &request, EEXIST, "already exists");
	claims_must_hold(f);
	fixture_stop(f);
	fake_gpu.count = 2;
	fixture_start(f);
	claim = claims_find(f->node->claims, "a");
	assert_non_null(claim->tenant);
	assert_same_terms(claim_terms(claim), &before);
	claims_must_hold(f);
	/* A claim that is released while it waits leaves nothing behind. */
	fixture_stop(f);
	fake_gpu.count = 1;
	fixture_start(f);
	release(f, "a");
	fixture_stop(f);
	fake_gpu.count = 2;
	fixture_start(f);
	assert_int_equal(claims_count(f->node->claims), 1);
	assert_int_equal(f->node->tenant_count, 1);
	claims_must_hold(f);
}

/* The remains of a daemon that was killed after a release take no room from a later claim. */
static void test_what_a_release_left(void **state)
{
	struct fixture *f = *state;
	struct claim_request request = claim_of(f, "a", 0, 6 * 1024, 10, 0);
	claim_made(f, &request);
	fixture_stop(f);
	run("cp -r %s/run/claims %s/before", f->dir, f->dir);
	fixture_start(f);
	release(f, "a");
	request = claim_of(f, "b", 0, 6 * 1024, 10, 0);
	struct tenant_terms terms = *claim_terms(claim_made(f, &request));
	fixture_stop(f);
	run("rm -r %s/run/claims && cp -r %s/before %s/run/claims", f->dir, f->dir, f->dir);
	fixture_start(f);
	assert_null(claims_find(f->node->claims, "a"));
	struct claim *claim = claims_find(f->node->claims, "b");
	assert_non_null(claim->tenant);
	assert_same_terms(claim_terms(claim), &terms);
	claims_must_hold(f);
}

/* ---- files that are no valid store ---- */

static void write_file(const char *path, const char *bytes, size_t size)
{
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	fclose(file);
}

static void execute(const char *path, const char *sql)
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

static void put_foreign(const char *path)
{
	unlink(path);
	execute(path, "CREATE TABLE song (name TEXT)");
}

static void put_newer(const char *path)
{
	execute(path, "PRAGMA user_version = 5");
}

static void put_without_table(const char *path)
{
	execute(path, "DROP TABLE slot");
}

static void put_wrong_value(const char *path)
{
	execute(path, "UPDATE device SET cores_pct = 1000");
}

static void put_wrong_text(const char *path)
{
	execute(path, "UPDATE claim SET on_full = 'sing'");
}

static void put_directory(const char *path)
{
	unlink(path);
	assert_int_equal(mkdir(path, 0700), 0);
}

static void put_half(const char *path)
{
	struct stat st;
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(truncate(path, st.st_size / 2), 0);
}

static void put_nothing(const char *path)
{
	unlink(path);
}

static unsigned count_bad(struct fixture *f)
{
	char pattern[128];
	glob_t found;
	snprintf(pattern, sizeof(pattern), "%s/run/claims.db.bad-*[0-9]", f->dir);
	unsigned count = glob(pattern, 0, NULL, &found) == 0 ? (unsigned)found.gl_pathc : 0;
	globfree(&found);
	return count;
}

/* Claims are made again from the tenants that were adopted, with all that they had. */
static void test_a_store_that_is_none(void **state)
{
	static const struct {
		void (*put)(const char *path);
		unsigned bad;
	} rows[] = {
		{ put_noise, 1 },      { put_torn_page, 1 },     { put_foreign, 1 },
		{ put_newer, 1 },      { put_without_table, 1 }, { put_wrong_value, 1 },
		{ put_wrong_text, 1 }, { put_directory, 1 },     { put_half, 1 },
		{ put_nothing, 0 },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fixture *f;
		char path[128];
		assert_int_equal(fixture_setup((void **)&f), 0);
		struct claim_request request = full_request(f);
		struct tenant_terms before = *claim_terms(claim_made(f, &request));
		fixture_stop(f);
		store_path(f, path);
		rows[i].put(path);
		fixture_start(f);
		struct claim *claim = claims_find(f->node->claims, "uid/c");
		if (!claim || !claim->tenant || count_bad(f) != rows[i].bad)
			fail_msg("row %zu: %s, %u set aside", i, claim ? "there" : "no claim",
				 count_bad(f));
		assert_same_terms(claim_terms(claim), &before);
		assert_int_equal(claims_counts(f->node->claims).stores_set_aside, rows[i].bad);
		claims_must_hold(f);
		/* And it is written down. */
		claims_restart(f);
		assert_same_terms(claim_terms(claims_find(f->node->claims, "uid/c")), &before);
		assert_int_equal(claims_counts(f->node->claims).stores_set_aside, 0);
		release(f, "uid/c");
		fixture_teardown((void **)&f);
	}
}

/* A second daemon with the same state directory is refused. */
static void test_two_daemons(void **state)
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

/* ---- a disk that fails ---- */

static void disk_is_good(void)
{
	failing_vfs.writes_left = failing_vfs.syncs_left = -1;
}

/* At each write of an allocation in turn: refused, and all as before; then it goes again. */
static void test_disk_full(void **state)
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
		disk_is_good();
		assert_int_equal(r, -ENOSPC);
		assert_non_null(strstr(err.text, "disk is full"));
		assert_int_equal(claims_count(f->node->claims), 1);
		claims_must_hold(f);
		if (++refused % 2)
			claims_restart(f);
		assert_int_equal(claims_count(f->node->claims), 1);
		second.device[0].card = &f->node->card[0];
	}
	disk_is_good();
	assert_true(refused >= 2);
	claims_must_hold(f);
	claims_restart(f);
	assert_int_equal(claims_count(f->node->claims), 2);
	/* A release that can't be written down does not happen. */
	struct error err = { 0 };
	failing_vfs.writes_left = 0;
	assert_int_equal(claims_release(f->node->claims, "b", NULL, &err), -ENOSPC);
	disk_is_good();
	assert_non_null(claims_find(f->node->claims, "b"));
	release(f, "b");
	claims_must_hold(f);
}

/* A withdrawn claim ends at once. Its row is deleted with the next transaction that the disk accepts. */
static void test_taken_back_on_a_full_disk(void **state)
{
	struct fixture *f = *state;
	struct claim_request first = claim_of(f, "a", 0, 16, 1, 0);
	struct claim_request second = claim_of(f, "b", 0, 2000, 1, 1);
	claim_made(f, &first);
	claim_made(f, &second);
	failing_vfs.failure = SQLITE_FULL;
	failing_vfs.writes_left = 0;
	claims_undo(f->node->claims, "b", "nobody was told of it");
	assert_null(claims_find(f->node->claims, "b"));
	claims_reconcile(f->node->claims); /* tries in vain */
	assert_int_equal(claims_counts(f->node->claims).released, 1);
	disk_is_good();
	/* Its key, its slot and its memory are free again, in the same transaction. */
	claim_made(f, &second);
	claims_must_hold(f);
	claims_restart(f);
	assert_int_equal(claims_count(f->node->claims), 2);
	claims_must_hold(f);
	/* Without another claim, the daemon's own periodic check deletes it. */
	failing_vfs.writes_left = 0;
	claims_undo(f->node->claims, "b", "nobody was told of it");
	disk_is_good();
	claims_reconcile(f->node->claims);
	claims_restart(f);
	assert_null(claims_find(f->node->claims, "b"));
	assert_int_equal(claims_count(f->node->claims), 1);
}

/* Without room for a first store the daemon starts, refuses claims with the reason, and saves them when there is room. */
static void test_disk_full_from_the_start(void **state)
{
	struct fixture *f = *state;
	struct claim_request request = claim_of(f, "a", 0, 16, 1, 0);
	failing_vfs.failure = SQLITE_FULL;
	failing_vfs.writes_left = 0;
	claim_refused(f, &request, ENOSPC, "claims can't be saved");
	assert_int_equal(claims_counts(f->node->claims).refused_store, 1);
	disk_is_good();
	claim_made(f, &request);
	claims_must_hold(f);
}

/*
 * A torn store is made again while the disk fills up, at each write in turn, and the daemon ends in that state. Claims in force
 * stay so, and are saved when there is room.
 */
static void test_disk_full_while_it_is_made_again(void **state)
{
	struct fixture *f = *state;
	char path[128];
	struct claim_request request = full_request(f);
	struct tenant_terms before = *claim_terms(claim_made(f, &request));
	store_path(f, path);
	for (int n = 0, writes = 0; n <= writes; n++) {
		fixture_stop(f);
		put_noise(path);
		failing_vfs.failure = SQLITE_FULL;
		failing_vfs.writes_left = n;
		fixture_start(f);
		assert_non_null(claims_find(f->node->claims, "uid/c")->tenant);
		claims_restart(f); /* and so the next one finds it */
		assert_non_null(claims_find(f->node->claims, "uid/c")->tenant);
		disk_is_good();
		failing_vfs.writes = 0;
		claims_restart(f);
		writes = failing_vfs.writes > writes ? failing_vfs.writes : writes;
		struct claim *claim = claims_find(f->node->claims, "uid/c");
		assert_same_terms(claim_terms(claim), &before);
		assert_true(claim->row > 0);
		claims_must_hold(f);
	}
}

static void test_sync_fails(void **state)
{
	struct fixture *f = *state;
	struct claim_request first = claim_of(f, "a", 0, 16, 1, 0);
	struct claim_request second = claim_of(f, "b", 0, 16, 1, 1);
	claim_made(f, &first);
	failing_vfs.failure = SQLITE_IOERR_FSYNC;
	failing_vfs.syncs_left = 0;
	claim_refused(f, &second, EIO, "claims.db");
	disk_is_good();
	claims_restart(f);
	assert_null(claims_find(f->node->claims, "b"));
	claims_must_hold(f);
	second.device[0].card = &f->node->card[0];
	claim_made(f, &second);
}

/* ---- while claims are needed ---- */

static enum claim_need need;
static unsigned asked;

static enum claim_need say_need(void *data, const struct claim *claim)
{
	asked++;
	return need;
}

static void wait_past_grace(struct fixture *f)
{
	f->node->config.claim_grace_ns = NSEC_PER_MSEC;
	claims_reconcile(f->node->claims);
	fixture_turn(f, 2);
	claims_reconcile(f->node->claims);
}

static void hold(struct client *c)
{
}

static void test_no_claim_needs_it(void **state)
{
	struct fixture *f = *state;
	struct claim_request wanted = claim_of(f, "a", 0, 16, 1, 0);
	struct claim_request kept = claim_of(f, "b", 0, 16, 1, 1);
	wanted.while_wanted = true;
	struct claim *claim = claim_made(f, &wanted);
	claim_made(f, &kept);
	claims_reconcile(f->node->claims); /* within its grace */
	assert_int_equal(claims_count(f->node->claims), 2);
	int pid = client_spawn(f, claim->tenant, 0, hold);
	wait_past_grace(f);
	assert_int_equal(claims_count(f->node->claims), 2); /* it is lived in */
	asked = 0;
	assert_int_equal(claims_add_need_check(f->node->claims, say_need, NULL), 0);
	client_kill(pid);
	fixture_until(f, claims_find(f->node->claims, "a")->tenant->process_count == 0);
	need = CLAIM_UNKNOWN;
	wait_past_grace(f);
	need = CLAIM_WANTED;
	wait_past_grace(f);
	assert_int_equal(asked, 4); /* of the claim with an end */
	assert_int_equal(claims_count(f->node->claims), 2);
	need = CLAIM_UNWANTED;
	wait_past_grace(f);
	assert_null(claims_find(f->node->claims, "a"));
	assert_non_null(claims_find(f->node->claims, "b"));
	assert_int_equal(claims_counts(f->node->claims).expired, 1);
	assert_int_equal(claims_counts(f->node->claims).released, 0);
	claims_remove_need_check(f->node->claims, say_need, NULL);
	claims_must_hold(f);
	claims_restart(f);
	assert_int_equal(claims_count(f->node->claims), 1);
}

/* The grace begins when the claim is found to be unneeded, not at the check before that. */
static void test_the_whole_grace(void **state)
{
	struct fixture *f = *state;
	struct claim_request wanted = claim_of(f, "a", 0, 16, 1, 0);
	wanted.while_wanted = true;
	claim_made(f, &wanted);
	assert_int_equal(claims_add_need_check(f->node->claims, say_need, NULL), 0);
	f->node->config.claim_grace_ns = 20 * NSEC_PER_MSEC;
	for (unsigned i = 0; i < 2; i++) {
		need = CLAIM_WANTED;
		claims_reconcile(f->node->claims);
		fixture_turn(f, 30);
		need = CLAIM_UNWANTED;
		claims_reconcile(f->node->claims);
		assert_non_null(claims_find(f->node->claims, "a"));
	}
	fixture_turn(f, 30);
	claims_reconcile(f->node->claims);
	assert_null(claims_find(f->node->claims, "a"));
	claims_remove_need_check(f->node->claims, say_need, NULL);
}

/* ---- killed ---- */

#define KILLS 100

/* Allocates and releases for ever, and writes one byte for each answer: + allocated, - released. */
static void churn(struct fixture *f, int fd, unsigned round)
{
	for (unsigned i = 0;; i++) {
		char key[32];
		struct claim *claim;
		snprintf(key, sizeof(key), "%u/%u", round, i);
		struct claim_request request = claim_of(f, key, i % 2, 64, 1, (int)(i % SLOTS_MAX));
		if (claims_allocate(f->node->claims, &request, &claim, NULL) < 0)
			_exit(1);
		if (write(fd, "+", 1) != 1)
			_exit(1);
		if (i % 4 == 3)
			continue;
		if (claims_release(f->node->claims, key, NULL, NULL) < 0 || write(fd, "-", 1) != 1)
			_exit(1);
	}
}

struct answers {
	unsigned made, released;
};

/*
 * Counts the child's answers, up to `most` or until it has ended. The last operation without an answer may or may not count:
 * one claim more, or one release more.
 */
static void count_answers(int fd, struct answers *answers, unsigned most)
{
	char c;
	for (unsigned i = 0; i < most && read(fd, &c, 1) == 1; i++)
		++*(c == '+' ? &answers->made : &answers->released);
}

static void test_killed(void **state)
{
	struct fixture *f = *state;
	unsigned answered = 0;
	srand(1);
	for (unsigned round = 0; round < KILLS; round++) {
		int fds[2];
		struct answers answers = { 0 };
		fixture_stop(f);
		assert_int_equal(pipe(fds), 0);
		pid_t pid = fork();
		if (pid == 0) {
			close(fds[0]);
			fixture_start(f);
			churn(f, fds[1], round);
		}
		close(fds[1]);
		/* At some time during its start, or after its first answers. */
		struct timespec pause = { .tv_nsec = rand() % 20 * 1000000L };
		count_answers(fds[0], &answers, (unsigned)rand() % 8);
		nanosleep(&pause, NULL);
		kill(pid, SIGKILL);
		int status;
		waitpid(pid, &status, 0);
		assert_true(WIFSIGNALED(status));
		count_answers(fds[0], &answers, UINT_MAX);
		close(fds[0]);
		answered += answers.made;
		fixture_start(f);
		claims_must_hold(f);
		unsigned now = claims_count(f->node->claims);
		unsigned least = answers.made - answers.released;
		if (now + 1 < least || now > least + 1)
			fail_msg("round %u: %u claims, %u were answered", round, now, least);
		/* Room for the next rounds. */
		for (struct claim *c; (c = claims_first(f->node->claims));) {
			char key[CLAIM_KEY_MAX];
			strcpy(key, claim_terms(c)->claim.key);
			release(f, key);
		}
	}
	assert_true(answered > KILLS);
	assert_int_equal(f->node->tenant_count, 0);
	claims_must_hold(f);
}

/* Each test begins with a working disk; the daemon's log is ignored. */
static int setup(void **state)
{
	failing_vfs_install();
	disk_is_good();
	log_set_level(LOG_LEVEL_ERROR - 1);
	return fixture_setup(state);
}

/* The claims that are in the file without its log. A copy by another process: SQLite's locks are this one's. */
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

/* The write-ahead log is copied into the file while the daemon is idle, and not every few allocations. */
static void test_log_goes_into_the_file(void **state)
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

/* Commits overwrite the log: a longer log would wait for the file system's journal. */
static void test_log_keeps_its_length(void **state)
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
			release(f, key);
		else if (i % 2)
			claims_must_hold(f);
	}
	/* The next daemon ignores data behind the last commit. */
	claims_restart(f);
	assert_int_equal(claims_count(f->node->claims), 200);
	assert_int_equal(log_bytes(f), before);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_made_and_released),
		TEST(test_names),
		TEST(test_refused),
		TEST(test_no_control),
		TEST(test_it_stays),
		TEST(test_over_a_restart),
		TEST(test_over_a_reboot),
		TEST(test_changes_are_written),
		TEST(test_a_card_is_gone),
		TEST(test_what_a_release_left),
		TEST(test_a_store_that_is_none),
		TEST(test_two_daemons),
		TEST(test_disk_full),
		TEST(test_taken_back_on_a_full_disk),
		TEST(test_disk_full_from_the_start),
		TEST(test_disk_full_while_it_is_made_again),
		TEST(test_sync_fails),
		TEST(test_no_claim_needs_it),
		TEST(test_the_whole_grace),
		TEST(test_log_goes_into_the_file),
		TEST(test_log_keeps_its_length),
		TEST(test_killed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
