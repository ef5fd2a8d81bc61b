#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kube/hami/cards.h"

static void test_json(void **state)
{
	static const char recorded[] =
		"[{\"id\":\"GPU-0b3\",\"count\":10,\"devmem\":81559,\"devcore\":100,"
		"\"type\":\"NVIDIA H100 80GB HBM3\",\"mode\":\"hami-core\",\"health\":true},"
		"{\"id\":\"GPU-77a\",\"index\":1,\"count\":7,\"devmem\":40960,\"devcore\":100,"
		"\"type\":\"NVIDIA-Tesla "
		"P4\",\"numa\":1,\"mode\":\"mig\",\"migProfiles\":[{\"name\":\"1g.5gb\","
		"\"memoryMB\":4864,\"core\":14,\"sliceCount\":1,\"placements\":[{\"start\":0,"
		"\"size\":1}]}]}]";
	struct kube_cards cards;
	assert_int_equal(cards_parse(recorded, &cards, NULL), 0);
	assert_int_equal(cards.count, 2);
	assert_string_equal(cards.card[0].id, "GPU-0b3");
	assert_int_equal(cards.card[0].index, 0);
	assert_int_equal(cards.card[0].count, 10);
	assert_int_equal(cards.card[0].memory_mib, 81559);
	assert_int_equal(cards.card[0].cores_pct, 100);
	assert_int_equal(cards.card[0].numa, 0);
	assert_true(cards.card[0].is_healthy);
	assert_null(cards.card[0].mig_profiles);
	assert_int_equal(cards.card[1].index, 1);
	assert_int_equal(cards.card[1].numa, 1);
	assert_string_equal(cards.card[1].mode, "mig");
	assert_false(cards.card[1].is_healthy);
	char *text = cards_format(&cards);
	assert_string_equal(text, recorded);
	free(text);
	cards_free(&cards);
}

static void test_none(void **state)
{
	struct kube_cards cards;
	assert_int_equal(cards_parse("[]", &cards, NULL), 0);
	assert_int_equal(cards.count, 0);
	char *text = cards_format(&cards);
	assert_string_equal(text, "[]");
	free(text);
	cards_free(&cards);
}

static void test_old_text(void **state)
{
	struct kube_cards cards;
	assert_int_equal(cards_parse("GPU-a,10,30720,100,NVIDIA-A10,0,true:"
				     "GPU-b,10,30720,100,NVIDIA-A10,1,false,1,hami-core:",
				     &cards, NULL),
			 0);
	assert_int_equal(cards.count, 2);
	assert_string_equal(cards.card[0].mode, CARD_MODE_DEFAULT);
	assert_true(cards.card[0].is_healthy);
	assert_int_equal(cards.card[0].memory_mib, 30720);
	assert_int_equal(cards.card[1].index, 1);
	assert_int_equal(cards.card[1].numa, 1);
	assert_false(cards.card[1].is_healthy);
	cards_free(&cards);
}

static void bad(const char *text, const char *why)
{
	struct kube_cards cards = { .count = 7 };
	struct error err;
	assert_int_equal(cards_parse(text, &cards, &err), -22);
	assert_int_equal(cards.count, 7);
	if (strncmp(err.text, "hami.io/node-nvidia-register: ", 30) || !strstr(err.text, why))
		fail_msg("%s: %s", text, err.text);
}

static void test_bad(void **state)
{
	bad("", "must be a JSON array, or");
	bad("GPU-a", "must be a JSON array, or");
	bad("[", "must be a JSON array");
	bad("[1]", "GPU 0: must be an object");
	bad("[{\"id\":\"a\"},{}]", "GPU 1: id: missing");
	bad("[{\"id\":7}]", "GPU 0: id: must be a string");
	bad("[{\"id\":\"a\",\"count\":-1}]", "GPU 0: count: must be a whole number");
	bad("[{\"id\":\"a\",\"devmem\":1.5}]", "devmem: must be");
	bad("[{\"id\":\"a\",\"devcore\":4294967296}]", "devcore: must be");
	bad("[{\"id\":\"a\",\"health\":\"yes\"}]", "health: must be true or false");
	bad("[{\"id\":\"a\",\"migProfiles\":[1]},{\"id\":\"b\",\"migProfiles\":{}}]",
	    "GPU 1: migProfiles: must be an array");
	bad("GPU-a,10,30720,100,NVIDIA-A10,0:", "GPU 0: 6 fields: must be 7 or 9");
	bad("GPU-a,10,30720,100,NVIDIA-A10,0,true,1:", "GPU 0: 8 fields");
	bad("GPU-a,10,30720,100,A10,0,true:GPU-b,ten,1,1,A10,0,true:", "GPU 1: count: ");
	bad("GPU-a,10,30720,100,A10,0,1:", "GPU 0: health: '1'");
	bad(",10,30720,100,A10,0,true:", "GPU 0: id: missing");
	bad("GPU-a,10,30720,100,A10,0,true", "must be a JSON array, or");
}

static void test_type(void **state)
{
	char type[CARD_TYPE_MAX];
	cards_type("NVIDIA H200", type);
	assert_string_equal(type, "NVIDIA H200");
	cards_type("Tesla P4", type);
	assert_string_equal(type, "NVIDIA-Tesla P4");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_json),     cmocka_unit_test(test_none),
		cmocka_unit_test(test_old_text), cmocka_unit_test(test_bad),
		cmocka_unit_test(test_type),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
