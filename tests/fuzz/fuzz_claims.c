/* The store of claims: whatever is in the file, what is read of it is within the bounds of what could be asked for. */
#include "fuzz.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/log.h"
#include "node/claims/store.h"

static char dir[] = "/dev/shm/allot-fuzz-XXXXXX";
static char path[64], others[3][80];

static void remove_files(void)
{
	for (unsigned i = 0; i < 3; i++)
		unlink(others[i]);
	unlink(path);
}

static void end(void)
{
	remove_files();
	rmdir(dir);
}

static void start(void)
{
	static const char *const parts[] = { "-wal", "-shm", "-journal" };
	if (!mkdtemp(dir))
		abort();
	snprintf(path, sizeof(path), "%s/claims.db", dir);
	for (unsigned i = 0; i < 3; i++)
		snprintf(others[i], sizeof(others[i]), "%s%s", path, parts[i]);
	log_set_level(LOG_LEVEL_ERROR);
	atexit(end);
}

static int check(void *data, const struct store_claim *claim, struct error *err)
{
	const struct tenant_terms *t = &claim->terms;
	unsigned *slots = data;

	FUZZ_CHECK(t->device_count >= 1 && t->device_count <= REGION_MAX_DEVICES);
	FUZZ_CHECK(strlen(t->id) == TENANT_ID_MAX - 1);
	FUZZ_CHECK(t->name[0] && strnlen(t->name, sizeof(t->name)) < sizeof(t->name));
	FUZZ_CHECK(t->claim.key[0] &&
		   strnlen(t->claim.key, sizeof(t->claim.key)) < sizeof(t->claim.key));
	FUZZ_CHECK(t->on_full <= ON_FULL_SWAP && t->elastic <= ELASTIC_CHOSEN_OFF);
	for (unsigned i = 0; i < t->device_count; i++) {
		const struct promise *p = &t->device[i].promise;
		FUZZ_CHECK(!t->device[i].card && claim->uuid[i][0]);
		FUZZ_CHECK(p->cores_pct >= 0 && p->limit_pct >= p->cores_pct && p->limit_pct <= 100);
		FUZZ_CHECK(p->quota_bytes <= INT64_MAX && p->reserve_bytes <= INT64_MAX);
		*slots += slots_count(&t->device[i].slots);
	}
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct store *store;
	struct error err = { 0 };
	unsigned slots = 0;
	bool is_new;

	if (!*path)
		start();
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size || close(fd) < 0)
		abort();
	if (store_open(path, &store, &is_new, &err) >= 0) {
		int r = store_read(store, check, &slots, &err);
		FUZZ_CHECK(r == 0 || err.text[0]);
		store_close(store);
	} else {
		FUZZ_CHECK(err.text[0]);
	}
	remove_files();
	return 0;
}
