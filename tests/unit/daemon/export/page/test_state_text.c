#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/export/page/state_text.h"

/* A state of tenants "id=value", separated by spaces, at a moment. */
static struct state_text state_of(int moment, const char *tenants)
{
	struct state_text s = { 0 };
	char id[TENANT_ID_MAX];
	int value, used;
	json_text_open(&s.json, NULL, '{');
	json_text_whole(&s.json, "before", moment);
	state_text_open_tenants(&s);
	for (; sscanf(tenants, "%8[^=]=%d %n", id, &value, &used) == 2; tenants += used) {
		state_text_begin_tenant(&s, id);
		json_text_open(&s.json, NULL, '{');
		json_text_string(&s.json, "id", id);
		json_text_whole(&s.json, "is", value);
		json_text_close(&s.json, '}');
		state_text_end_tenant(&s);
	}
	state_text_close_tenants(&s);
	json_text_whole(&s.json, "after", moment);
	json_text_close(&s.json, '}');
	return s;
}

static void expect(const char *then, const char *now, const char *rows, const char *gone)
{
	struct state_text a = state_of(1, then), b = state_of(2, now);
	struct json_text t = { 0 };
	char wanted[512];
	snprintf(wanted, sizeof(wanted),
		 "{\"before\":2,\"tenants\":[%s],\"after\":2,\"gone\":[%s]}", rows, gone);
	state_text_write_news(&a, &b, &t);
	char *text = json_text_end(&t);
	assert_string_equal(text, wanted);
	free(text);
	state_text_free(&a);
	state_text_free(&b);
}

static void test_whole(void **state)
{
	struct state_text s = state_of(1, "a=1 b=2");
	assert_string_equal(s.json.text, "{\"before\":1,\"tenants\":[{\"id\":\"a\",\"is\":1},"
					 "{\"id\":\"b\",\"is\":2}],\"after\":1}");
	assert_int_equal(s.count, 2);
	state_text_free(&s);
	assert_null(s.row);
	state_text_free(&s);
}

static void test_nothing_new(void **state)
{
	expect("", "", "", "");
	expect("a=1 b=2", "a=1 b=2", "", "");
}

static void test_otherwise(void **state)
{
	expect("a=1 b=2 c=3", "a=1 b=5 c=3", "{\"id\":\"b\",\"is\":5}", "");
	expect("a=1 b=2", "a=3 b=4", "{\"id\":\"a\",\"is\":3},{\"id\":\"b\",\"is\":4}", "");
	/* Of another length, which begins alike. */
	expect("a=1", "a=12", "{\"id\":\"a\",\"is\":12}", "");
}

static void test_come_and_gone(void **state)
{
	expect("", "a=1", "{\"id\":\"a\",\"is\":1}", "");
	expect("a=1", "", "", "\"a\"");
	expect("a=1 b=2 c=3 d=4", "b=2 d=4 e=5", "{\"id\":\"e\",\"is\":5}", "\"a\",\"c\"");
	expect("a=1 b=2", "c=3", "{\"id\":\"c\",\"is\":3}", "\"a\",\"b\"");
}

/* A difference names tenants that ended and tenants that started again: applying both in turn gives the present state. */
static void test_another_order(void **state)
{
	expect("a=1 b=2 c=3", "c=3 a=1 b=2", "{\"id\":\"a\",\"is\":1},{\"id\":\"b\",\"is\":2}",
	       "\"a\",\"b\"");
}

static void test_many(void **state)
{
	char then[2048] = "", now[2048] = "";
	for (int i = 0; i < 150; i++) {
		sprintf(then + strlen(then), "t%d=%d ", i, i);
		sprintf(now + strlen(now), "t%d=%d ", i, i == 149 ? 7 : i);
	}
	expect(then, now, "{\"id\":\"t149\",\"is\":7}", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),         cmocka_unit_test(test_nothing_new),
		cmocka_unit_test(test_otherwise),     cmocka_unit_test(test_come_and_gone),
		cmocka_unit_test(test_another_order), cmocka_unit_test(test_many),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
