/* Whether claims can stand beside each other: sums on cards, keys, tenants, slots. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/containers/claims/check.h"

#define GIB (UINT64_C(1) << 30)

static struct card cards[2];

/* Terms on one card: quota in GiB (0: the unpromised memory), percent, one slot (negative: none). */
static struct tenant_terms terms(unsigned number, unsigned card, uint64_t gib, double pct, int slot)
{
	struct tenant_terms t = { .device_count = 1 };
	struct tenant_device_terms *d = &t.device[0];
	snprintf(t.claim.key, sizeof(t.claim.key), "key-%u", number);
	snprintf(t.id, sizeof(t.id), "%08x", number);
	snprintf(t.name, sizeof(t.name), "name-%u", number);
	d->card = &cards[card];
	d->promise = (struct promise){
		.memory_given = gib > 0, .quota_bytes = gib * GIB, .cores_pct = pct, .limit_pct = 100
	};
	if (slot >= 0)
		slots_add(&d->slots, (unsigned)slot);
	return t;
}

static void expect(const struct tenant_terms *a, const struct tenant_terms *b, bool may_overcommit,
		   int code, const char *word)
{
	const struct tenant_terms *list[] = { a, b };
	struct error err = { 0 };
	assert_int_equal(claims_check(list, 2, may_overcommit, &err), -code);
	if (code && !strstr(err.text, word))
		fail_msg("'%s' lacks '%s'", err.text, word);
}

static void test_memory(void **state)
{
	struct tenant_terms a = terms(1, 0, 5, 0, -1), b = terms(2, 0, 3, 0, -1);
	expect(&a, &b, false, 0, "");
	b = terms(2, 0, 4, 0, -1);
	expect(&a, &b, false, ENOSPC,
	       "claim 'key-2': GPU 0: memory quotas add up to 9216 MiB, and the GPU has 8192 MiB");
	b = terms(2, 1, 4, 0, -1); /* on another card */
	expect(&a, &b, false, 0, "");
	b = terms(2, 0, 0, 0, -1); /* the unpromised memory */
	expect(&a, &b, false, 0, "");
	/* The quota of a waiting tenant is not promised; of swappable ones only the largest counts. */
	b = terms(2, 0, 8, 0, -1);
	b.on_full = ON_FULL_WAIT;
	expect(&a, &b, false, 0, "");
	a.on_full = ON_FULL_SWAP;
	b.on_full = ON_FULL_SWAP;
	expect(&a, &b, false, 0, "");
	a.on_full = ON_FULL_FAIL;
	expect(&a, &b, false, ENOSPC, "quotas");
	/* None is more than the card. */
	b.on_full = ON_FULL_WAIT;
	b.device[0].promise.quota_bytes = 9 * GIB;
	expect(&a, &b, false, ENOSPC,
	       "claim 'key-2': GPU 0: a memory quota of 9216 MiB is more than the GPU has (8192 MiB)");
}

/* Values from a file may be of any size, so sums may wrap, also in the message. */
static void test_sums_that_overflow(void **state)
{
	static const enum on_full ways[] = { ON_FULL_FAIL, ON_FULL_WAIT, ON_FULL_SWAP };
	struct tenant_terms a = terms(1, 0, 5, 0, -1), b = terms(2, 0, 1, 0, -1);
	const struct tenant_terms *const list[] = { &a, &b };
	struct error err = { 0 };
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		b.on_full = ways[i];
		b.device[0].promise.quota_bytes = UINT64_MAX - 4 * GIB;
		assert_int_equal(claims_check(list, 2, false, &err), -ENOSPC);
		assert_string_equal(err.text,
				    "claim 'key-2': GPU 0: a memory quota of 17592186040320 MiB "
				    "is more than the GPU has (8192 MiB)");
	}
	a.device[0].promise.quota_bytes = b.device[0].promise.quota_bytes = UINT64_C(1) << 63;
	b.on_full = ON_FULL_FAIL;
	expect(&a, &b, false, ENOSPC, "key-1");
}

static void test_cores(void **state)
{
	struct tenant_terms a = terms(1, 0, 1, 60, -1), b = terms(2, 0, 1, 40, -1);
	expect(&a, &b, false, 0, "");
	b.device[0].promise.cores_pct = 40.5;
	expect(&a, &b, false, ENOSPC, "guaranteed cores add up to 100.5 %");
	expect(&a, &b, true, 0, "");
	/* Thirds, which floating point can't represent. */
	a.device[0].promise.cores_pct = 100.0 / 3 * 2;
	b.device[0].promise.cores_pct = 100.0 / 3 + 1e-12;
	expect(&a, &b, false, 0, "");
}

static void test_twice(void **state)
{
	struct tenant_terms a = terms(1, 0, 1, 1, 5), b = terms(1, 1, 1, 1, 6);
	expect(&a, &b, false, EEXIST, "'key-1' already exists");
	b = terms(2, 1, 1, 1, 6);
	strcpy(b.name, a.name);
	expect(&a, &b, false, EEXIST, "tenant 'name-1' (00000002) already belongs to claim 'key-1'");
	b = terms(2, 1, 1, 1, 6);
	strcpy(b.id, a.id);
	expect(&a, &b, false, EEXIST, "tenant 'name-2' (00000001) already belongs to claim 'key-1'");
	b = terms(2, 0, 1, 1, 5);
	expect(&a, &b, false, EEXIST, "device GPU-0-5 already belongs to claim 'key-1'");
	b = terms(2, 1, 1, 1, 5);
	expect(&a, &b, false, 0, "");
}

static void test_parked(void **state)
{
	struct tenant_terms a = terms(1, 0, 8, 100, 5), b = terms(2, 0, 8, 100, 5);
	b.device[0].card = NULL;
	expect(&a, &b, false, 0, "");
}

static void test_slots(void **state)
{
	struct slots a = { 0 }, b = { 0 };
	assert_int_equal(slots_first_common(&a, &b), -1);
	for (unsigned i = 0; i < SLOTS_MAX; i++) {
		assert_false(slots_has(&a, i));
		slots_add(&a, i);
		assert_true(slots_has(&a, i));
		assert_int_equal(slots_count(&a), i + 1);
	}
	slots_add(&b, 200);
	assert_int_equal(slots_first_common(&a, &b), 200);
}

/* The memory of both is above the card's, and both have all of its time. */
static void test_containers_that_never_run_at_once(void **state)
{
	struct tenant_terms a = terms(1, 0, 5, 100, -1), b = terms(2, 0, 8, 100, -1);
	strcpy(a.claim.key, "pod/u-1/fetch@0");
	strcpy(b.claim.key, "pod/u-1/main");
	expect(&a, &b, false, 0, "");
	strcpy(a.claim.key, "pod/u-1/fetch@0+");
	expect(&a, &b, false, ENOSPC, "claim 'pod/u-1/main': GPU 0: memory quotas add up to");
	strcpy(a.claim.key, "pod/u-2/fetch@0");
	expect(&a, &b, false, ENOSPC, "claim 'pod/u-1/main': GPU 0: memory quotas add up to");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_sums_that_overflow),
		cmocka_unit_test(test_cores),
		cmocka_unit_test(test_twice),
		cmocka_unit_test(test_parked),
		cmocka_unit_test(test_slots),
		cmocka_unit_test(test_containers_that_never_run_at_once),
	};
	for (unsigned i = 0; i < 2; i++) {
		cards[i] = (struct card){ .index = i, .info.memory_bytes = 8 * GIB };
		snprintf(cards[i].info.uuid_text, sizeof(cards[i].info.uuid_text), "GPU-%u", i);
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
