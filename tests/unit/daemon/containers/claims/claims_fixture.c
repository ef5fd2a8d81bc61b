#include "claims_fixture.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/containers/claims/check.h"

struct claim_request claim_of(struct fixture *f, const char *key, unsigned card, uint64_t mib,
			      double cores_pct, int slot)
{
	struct claim_request request = { .key = key, .uid = geteuid(), .device_count = 1 };
	struct claim_device_request *d = &request.device[0];
	d->card = &f->node->card[card];
	d->terms.has_memory = true;
	d->terms.memory_bytes = mib * MIB;
	d->terms.has_cores = true;
	d->terms.cores_pct = cores_pct;
	if (slot >= 0)
		slots_add(&d->slots, (unsigned)slot);
	return request;
}

struct claim *claim_made(struct fixture *f, const struct claim_request *request)
{
	struct error err = { 0 };
	struct claim *claim = NULL;
	if (claims_allocate(f->node->claims, request, &claim, &err) < 0)
		fail_msg("%s: %s", request->key, err.text);
	assert_ptr_equal(claims_find(f->node->claims, request->key), claim);
	return claim;
}

static unsigned count_directories(struct fixture *f)
{
	char path[NODE_PATH_MAX];
	unsigned count = 0;
	tenant_dir_path(f->node, TENANT_PLACE_CLAIM, NULL, NULL, path);
	DIR *dir = opendir(path);
	assert_non_null(dir);
	for (struct dirent *e; (e = readdir(dir));)
		count += e->d_name[0] != '.';
	closedir(dir);
	return count;
}

void claim_refused(struct fixture *f, const struct claim_request *request, int code,
		   const char *word)
{
	struct error err = { 0 };
	struct claim *claim = NULL;
	unsigned claims = claims_count(f->node->claims), tenants = f->node->tenant_count;
	unsigned directories = count_directories(f);
	assert_int_equal(claims_allocate(f->node->claims, request, &claim, &err), -code);
	if (!strstr(err.text, word))
		fail_msg("'%s' lacks '%s'", err.text, word);
	assert_null(claim);
	assert_int_equal(claims_count(f->node->claims), claims);
	assert_int_equal(f->node->tenant_count, tenants);
	assert_int_equal(count_directories(f), directories);
}

/* Each slot is found to belong to its claim, and a slot without a claim to none. */
static void holders_must_hold(struct fixture *f)
{
	unsigned had = 0, held = 0;
	for (struct claim *c = claims_first(f->node->claims); c; c = claims_next(c))
		for (unsigned i = 0; i < claim_terms(c)->device_count; i++)
			for (unsigned slot = 0; slot < SLOTS_MAX; slot++) {
				struct slots one = { 0 };
				unsigned found;
				slots_add(&one, slot);
				if (!slots_has(&claim_terms(c)->device[i].slots, slot))
					continue;
				had++;
				assert_ptr_equal(claims_holder(f->node->claims, claim_uuid(c, i),
							       &one, &found),
						 c);
				assert_int_equal(found, slot);
			}
	for (unsigned i = 0; i < f->node->card_count; i++) {
		struct slots left;
		unsigned slot;
		memset(&left, 0xff, sizeof(left));
		while (claims_holder(f->node->claims, f->node->card[i].info.uuid_text, &left,
				     &slot)) {
			slots_remove(&left, slot);
			held++;
		}
	}
	/* Claims may also have slots of GPUs that are missing. */
	assert_true(held <= had);
}

void claims_must_hold(struct fixture *f)
{
	const struct tenant_terms *list[2048];
	unsigned count = 0, in_force = 0, tenants = 0, retired = 0;
	struct error err = { 0 };
	struct tenant *t;
	for (struct claim *c = claims_first(f->node->claims); c; c = claims_next(c)) {
		assert_true(count < 2048);
		list[count++] = claim_terms(c);
		in_force += c->tenant != NULL;
		assert_true((c->tenant == NULL) == (*claim_parked_reason(c) != '\0'));
	}
	assert_int_equal(count, claims_count(f->node->claims));
	if (claims_check(list, count, false, &err) < 0)
		fail_msg("%s", err.text);
	TAILQ_FOREACH(t, &f->node->tenants, link)
		if (*t->terms.claim.key)
			*(t->terms.is_retired ? &retired : &tenants) += 1;
	assert_int_equal(tenants, in_force);
	holders_must_hold(f);
	assert_true(count_directories(f) >= in_force + retired &&
		    count_directories(f) <= count + retired);
}

void claims_restart(struct fixture *f)
{
	fixture_stop(f);
	fixture_start(f);
}

void claim_released(struct fixture *f, const char *key)
{
	struct error err = { 0 };
	if (claims_release(f->node->claims, key, "by the test", &err) < 0)
		fail_msg("%s", err.text);
	assert_null(claims_find(f->node->claims, key));
}

void assert_same_terms(const struct tenant_terms *a, const struct tenant_terms *b)
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

struct claim_request request_with_all_terms(struct fixture *f)
{
	struct claim_request request = claim_of(f, "uid/c", 1, 1000, 12.5, 255);
	slots_add(&request.device[0].slots, 64);
	request.device[0].terms.has_limit = true;
	request.device[0].terms.limit_pct = 75;
	request.device_count = 2;
	request.device[1].card = &f->node->card[0]; /* all unpromised memory */
	request.uid = 1234;
	request.priority = -7;
	request.elastic = ELASTIC_CHOSEN_OFF;
	request.while_wanted = true;
	return request;
}

int claims_setup(void **state)
{
	log_set_level(LOG_LEVEL_ERROR - 1);
	return fixture_setup(state);
}
