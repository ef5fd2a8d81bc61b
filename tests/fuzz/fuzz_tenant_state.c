/* A tenant's state file: whatever it says, what is adopted is within the bounds of what could be asked for. */
#include "fuzz.h"

#include <unistd.h>

#include "base/log.h"
#include "daemon/state/tenant_state.h"

#define CARDS 2

static struct node node;
static char path[] = "/dev/shm/allot-fuzz-XXXXXX"; /* a plain file: no other is read */
static int fd = -1;

static void end(void)
{
	unlink(path);
}

/* As the inputs in corpus/tenant_state have them. */
static void start(void)
{
	config_default(&node.config);
	TAILQ_INIT(&node.tenants);
	node.card_count = CARDS;
	for (unsigned i = 0; i < CARDS; i++) {
		node.card[i].index = i;
		node.card[i].info.memory_bytes = UINT64_C(8) << 30;
		memset(node.card[i].info.uuid, (int)(0x11 * (i + 1)),
		       sizeof(node.card[i].info.uuid));
	}
	log_set_level(LOG_LEVEL_ERROR);
	fd = mkstemp(path);
	atexit(end);
}

static void check(const struct tenant_state *state)
{
	const struct tenant_terms *t = &state->terms;

	FUZZ_CHECK(t->device_count >= 1 && t->device_count <= CARDS);
	FUZZ_CHECK(!strcmp(t->id, "0123abcd"));
	FUZZ_CHECK(t->name[0] && strnlen(t->name, sizeof(t->name)) < sizeof(t->name));
	for (unsigned i = 0; i < t->device_count; i++) {
		const struct promise *p = &t->device[i].promise;
		FUZZ_CHECK(t->device[i].card);
		FUZZ_CHECK(p->cores_pct >= 0 && p->limit_pct >= p->cores_pct && p->limit_pct <= 100);
		FUZZ_CHECK(state->past.granted_bytes[i] <= p->quota_bytes);
	}
	for (const struct old_process *o = state->old; o; o = o->next)
		FUZZ_CHECK(o->pid > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tenant_state state = { 0 };
	struct error err;

	if (fd < 0)
		start();
	if (fd < 0 || ftruncate(fd, 0) < 0 || pwrite(fd, data, size, 0) != (ssize_t)size)
		abort();
	if (tenant_state_load(&node, path, "0123abcd", &state, &err) >= 0) {
		check(&state);
		tenant_state_free(&state);
	}
	return 0;
}
