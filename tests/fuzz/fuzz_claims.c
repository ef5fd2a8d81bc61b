/* The store of claims: whatever is in the file, what is read of it is within the bounds of what could be asked for. */
#include "fuzz.h"

#include "base/log.h"
#include "memory_vfs.h"
#include "daemon/containers/claims/store.h"

/* No file of that name is there: it is in memory. */
#define PATH "/dev/shm/allot-fuzz-claims.db"

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
	static bool is_started;
	struct store *store;
	struct error err = { 0 };
	unsigned slots = 0;
	bool is_new;

	if (!is_started) {
		memory_vfs_use();
		log_set_level(LOG_LEVEL_ERROR);
		is_started = true;
	}
	if (size > MEMORY_VFS_MOST_BYTES)
		return 0;
	memory_vfs_set(data, size);
	if (store_open(PATH, &store, &is_new, &err) >= 0) {
		int r = store_read(store, check, &slots, &err);
		FUZZ_CHECK(r == 0 || err.text[0]);
		store_close(store);
	} else {
		FUZZ_CHECK(err.text[0]);
	}
	FUZZ_CHECK(memory_vfs_is_idle());
	return 0;
}
