#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kube/hami/shares.h"

static void check_format(const struct kube_shares *shares, const char *wanted)
{
	char *text = shares_format(shares);
	assert_string_equal(text, wanted);
	free(text);
}

static void test_there_and_back(void **state)
{
	static const char recorded[] =
		"GPU-a,NVIDIA,3000,0:;;GPU-b,NVIDIA,500,10:GPU-c,NVIDIA,0,100:;";
	struct kube_shares shares;
	size_t count;
	assert_int_equal(shares_parse(recorded, &shares, NULL), 0);
	assert_int_equal(shares.containers, 3);
	assert_int_equal(shares.count, 3);
	const struct kube_share *first = shares_of(&shares, 0, &count);
	assert_int_equal(count, 1);
	assert_string_equal(first->card, "GPU-a");
	assert_string_equal(first->kind, "NVIDIA");
	assert_int_equal(first->memory_mib, 3000);
	shares_of(&shares, 1, &count);
	assert_int_equal(count, 0);
	const struct kube_share *third = shares_of(&shares, 2, &count);
	assert_int_equal(count, 2);
	assert_int_equal(third[0].cores_pct, 10);
	assert_string_equal(third[1].card, "GPU-c");
	assert_int_equal(third[1].cores_pct, 100);
	shares_of(&shares, 3, &count);
	assert_int_equal(count, 0);
	check_format(&shares, recorded);
	shares_free(&shares);
}

/* As both versions of HAMi leave it at the end, and before the first. */
static void test_nothing_left(void **state)
{
	struct kube_shares shares;
	static const char *const texts[] = { "", ";", ";;", ";;;;;" };
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(shares_parse(texts[i], &shares, NULL), 0);
		assert_int_equal(shares.count, 0);
		assert_int_equal(shares.containers, strlen(texts[i]));
		check_format(&shares, texts[i]);
		shares_free(&shares);
	}
}

static void test_erase(void **state)
{
	struct kube_shares shares;
	assert_int_equal(shares_parse(";a,NVIDIA,1,2:b,NVIDIA,1,2:;c,NVIDIA,3,4:;", &shares, NULL),
			 0);
	shares_erase(&shares, 1);
	check_format(&shares, ";;c,NVIDIA,3,4:;");
	shares_erase(&shares, 0);
	check_format(&shares, ";;c,NVIDIA,3,4:;");
	shares_erase(&shares, 2);
	check_format(&shares, ";;;");
	shares_free(&shares);
}

/* Init containers that are left out are put back in; where all are named, or more, each is where it stands. */
static void test_of_a_pod(void **state)
{
	static const struct {
		const char *text;
		size_t init, containers, at, of;
	} rows[] = {
		{ "a,NVIDIA,1,2:;;", 1, 3, 1, 3 },   { "a,NVIDIA,1,2:;;;", 1, 3, 0, 3 },
		{ "a,NVIDIA,1,2:;;;;", 1, 3, 0, 4 }, { "a,NVIDIA,1,2:;;", 0, 2, 0, 2 },
		{ ";a,NVIDIA,1,2:;", 2, 4, 3, 4 },   { "a,NVIDIA,1,2:;", 1, 3, 0, 1 },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct kube_shares shares;
		assert_int_equal(shares_parse_of(rows[i].text, rows[i].init, rows[i].containers,
						 &shares, NULL),
				 0);
		assert_int_equal(shares.share[0].container, rows[i].at);
		assert_int_equal(shares.containers, rows[i].of);
		shares_free(&shares);
	}
	struct kube_shares shares;
	assert_int_equal(shares_parse_of("a", 1, 2, &shares, NULL), -EINVAL);
}

static void test_equal(void **state)
{
	struct kube_shares a, b;
	assert_int_equal(shares_parse("a,NVIDIA,1,2:;", &a, NULL), 0);
	assert_int_equal(shares_parse("a,NVIDIA,1,2;;", &b, NULL), 0);
	assert_true(shares_equal(a.share, a.count, b.share, b.count));
	b.share[0].memory_mib++;
	assert_false(shares_equal(a.share, a.count, b.share, b.count));
	assert_false(shares_equal(a.share, a.count, b.share, 0));
	shares_free(&a);
	shares_free(&b);
}

static void bad(const char *text, const char *why)
{
	struct kube_shares shares;
	struct error err;
	int r = shares_parse(text, &shares, &err);
	assert_true(r == -EINVAL || r == -ERANGE);
	if (!strstr(err.text, why))
		fail_msg("%s: %s", text, err.text);
}

static void test_bad(void **state)
{
	char longest[300];
	snprintf(longest, sizeof(longest), "%0200d,NVIDIA,1,2:;", 0);
	bad("a,NVIDIA,1,2:;b", "container 1: share 0: 1 fields");
	bad("a;", "container 0: share 0: 1 fields: must be UUID,KIND,MEMORY,CORES");
	bad(";a,NVIDIA,1,2:b,NVIDIA,1:;", "container 1: share 1: 3 fields");
	bad(",NVIDIA,1,2:;", "container 0: share 0: UUID: ''");
	bad("a,,1,2:;", "container 0: share 0: kind: ''");
	bad("a,NVIDIA,,2:;", "container 0: share 0: memory: ");
	bad("a,NVIDIA,-1,2:;", "memory: ");
	bad("a,NVIDIA,99999999999999999999,2:;", "memory: ");
	bad("a,NVIDIA,1,2x:;", "cores: ");
	bad(longest, "UUID: '0000");
}

/* What other schedulers' versions write, and hands: it means the same. */
static void test_lenient(void **state)
{
	static const struct {
		const char *text, *as;
	} rows[] = {
		{ "a,NVIDIA,1,2:", "a,NVIDIA,1,2:;" },
		{ "a,NVIDIA,1,2:;;b,NVIDIA,3,4", "a,NVIDIA,1,2:;;b,NVIDIA,3,4:;" },
		{ "a,NVIDIA,1,2,3:;", "a,NVIDIA,1,2:;" },
		{ "a,NVIDIA,1,2::;", "a,NVIDIA,1,2:;" },
		{ ":;", ";" },
		{ "GPU-1,NVIDIA,10000,0:;;,,0,0:;", "GPU-1,NVIDIA,10000,0:;;;" },
		{ ",,0,0:;", ";" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct kube_shares shares;
		assert_int_equal(shares_parse(rows[i].text, &shares, NULL), 0);
		check_format(&shares, rows[i].as);
		shares_free(&shares);
	}
}

/* What is too much is refused before anything is made for it. */
static void test_too_much(void **state)
{
	char *text = malloc(100001);
	memset(text, ';', 100000);
	text[100000] = '\0';
	bad(text, "100000 containers");
	free(text);
}

/* What is borrowed is the same list, with other cores; it holds for just these shares. */
static void test_borrowed(void **state)
{
	struct kube_shares shares, borrowed;
	assert_int_equal(shares_parse(";a,NVIDIA,1000,0:b,NVIDIA,2000,0:;", &shares, NULL), 0);
	assert_false(shares_have_borrowed(&shares));
	shares.share[0].borrowed_pct = 20;
	shares.share[1].borrowed_pct = 5;
	assert_true(shares_have_borrowed(&shares));
	char *text = shares_format_borrowed(&shares);
	assert_string_equal(text, ";a,NVIDIA,1000,20:b,NVIDIA,2000,5:;");
	assert_int_equal(shares_parse(text, &borrowed, NULL), 0);
	assert_int_equal(shares_borrowed(&borrowed, &shares.share[0]), 20);
	assert_int_equal(shares_borrowed(&borrowed, &shares.share[1]), 5);
	/* Another card, amount or container; one to which time is promised. */
	struct kube_share other = shares.share[0];
	strcpy(other.card, "c");
	assert_int_equal(shares_borrowed(&borrowed, &other), 0);
	other = shares.share[0];
	other.memory_mib++;
	assert_int_equal(shares_borrowed(&borrowed, &other), 0);
	other = shares.share[0];
	other.container = 0;
	assert_int_equal(shares_borrowed(&borrowed, &other), 0);
	other = shares.share[0];
	other.cores_pct = 20;
	assert_int_equal(shares_borrowed(&borrowed, &other), 0);
	/* More than a card has. */
	borrowed.share[0].cores_pct = 4000000000;
	assert_int_equal(shares_borrowed(&borrowed, &shares.share[0]), 100);
	free(text);
	shares_free(&borrowed);
	shares_free(&shares);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_there_and_back), cmocka_unit_test(test_nothing_left),
		cmocka_unit_test(test_erase),          cmocka_unit_test(test_of_a_pod),
		cmocka_unit_test(test_equal),          cmocka_unit_test(test_bad),
		cmocka_unit_test(test_lenient),        cmocka_unit_test(test_borrowed),
		cmocka_unit_test(test_too_much),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
