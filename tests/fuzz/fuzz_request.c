/* A line on the control socket of a daemon with two pretended cards; what it makes is removed before the next. */
#include "fuzz.h"

#include "base/log.h"
#include "fixture.h"
#include "daemon/api/dispatch.h"
#include "daemon/containers/claims/claims.h"

static struct fixture *fixture;

static void end(void)
{
	void *state = fixture;

	fixture_teardown(&state);
}

static void start(void)
{
	void *state = NULL;

	fake_gpu.count = 2;
	fixture_base = "/dev/shm"; /* no disk to wait for */
	if (fixture_setup(&state) != 0)
		abort();
	fixture = state;
	log_set_level(LOG_LEVEL_ERROR);
	atexit(end);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!fixture)
		start();
	struct node *node = fixture->node;
	struct session session = fixture->session;
	char *text = fuzz_text(data, size);
	char *reply = dispatch_request(&session, text, size);
	FUZZ_CHECK(reply);
	size_t length = strlen(reply);
	FUZZ_CHECK(length > 1 && strchr(reply, '\n') == reply + length - 1);
	session_end(&session);
	for (struct claim *c; (c = claims_first(node->claims));) {
		char key[CLAIM_KEY_MAX];
		strcpy(key, claim_terms(c)->claim.key);
		FUZZ_CHECK(claims_release(node->claims, key, "the next input", NULL) == 0);
	}
	while (!TAILQ_EMPTY(&node->tenants))
		tenant_remove(TAILQ_FIRST(&node->tenants), "the next input");
	/* What the loop no longer has is given back by its next turn. */
	FUZZ_CHECK(loop_step(node->loop, 0) == 0);
	free(reply);
	free(text);
	return 0;
}
