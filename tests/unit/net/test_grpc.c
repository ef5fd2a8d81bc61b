/* gRPC's own formats: statuses, texts, times, messages in pieces. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "net/grpc.h"

#define HOURS_NS UINT64_C(3600000000000)

static enum grpc_status status(const char *text)
{
	return grpc_status_parse(text, strlen(text));
}

static void test_statuses(void **state)
{
	assert_int_equal(status("0"), GRPC_OK);
	assert_int_equal(status("5"), GRPC_NOT_FOUND);
	assert_int_equal(status("14"), GRPC_UNAVAILABLE);
	assert_int_equal(status("16"), 16);
	const char *const wrong[] = { "", "00", "05", "17", "100", "-1", "x", "1x", "+1", " 0" };
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(status(wrong[i]), GRPC_UNKNOWN);
}

static void check_text(const char *text, const char *value)
{
	char coded[GRPC_CODED_TEXT_MAX], back[GRPC_TEXT_MAX];
	grpc_text_encode(text, coded);
	assert_string_equal(coded, value);
	grpc_text_decode(coded, strlen(coded), back);
	assert_string_equal(back, text);
}

static void test_texts(void **state)
{
	char back[GRPC_TEXT_MAX], coded[GRPC_CODED_TEXT_MAX], longest[2 * GRPC_TEXT_MAX];
	check_text("", "");
	check_text("plain text, 'quoted'", "plain text, 'quoted'");
	check_text("100 %", "100 %25");
	check_text("a\nb\tc", "a%0Ab%09c");
	check_text("gr\xc3\xbc\xc3\x9f", "gr%C3%BC%C3%9F");
	/* No codes are kept as they are; a NUL would hide what follows. */
	grpc_text_decode("50% of %zz%4", 12, back);
	assert_string_equal(back, "50% of %zz%4");
	grpc_text_decode("a%00b", 5, back);
	assert_string_equal(back, "a?b");
	grpc_text_decode("%c3%BC", 6, back);
	assert_string_equal(back, "\xc3\xbc");
	memset(longest, '\x01', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	grpc_text_encode(longest, coded);
	assert_int_equal(strlen(coded), 3 * (GRPC_TEXT_MAX - 1));
	grpc_text_decode(longest, sizeof(longest) - 1, back);
	assert_int_equal(strlen(back), GRPC_TEXT_MAX - 1);
}

static void check_timeout(const char *text, uint64_t ns)
{
	uint64_t got = 0;
	assert_int_equal(grpc_timeout_parse(text, strlen(text), &got), 0);
	assert_true(got == ns);
}

static void test_timeouts(void **state)
{
	check_timeout("15097605u", UINT64_C(15097605000));
	check_timeout("10S", UINT64_C(10000000000));
	check_timeout("1n", 1);
	check_timeout("250m", 250000000);
	check_timeout("2M", UINT64_C(120000000000));
	check_timeout("1H", HOURS_NS);
	check_timeout("0S", 0);
	check_timeout("99999999H", GRPC_TIMEOUT_MOST_NS);
	const char *const wrong[] = { "", "S", "1", "123456789S", "-1S", "1.5S", "1s", "1 S", "S1" };
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		uint64_t got = 7;
		assert_int_equal(grpc_timeout_parse(wrong[i], strlen(wrong[i]), &got), -EINVAL);
		assert_int_equal(got, 7);
	}
}

static bool is_type(const char *text)
{
	return grpc_is_content_type(text, strlen(text));
}

static void test_content_types(void **state)
{
	assert_true(is_type("application/grpc"));
	assert_true(is_type("application/grpc+proto"));
	assert_true(is_type("application/grpc;charset=utf-8"));
	assert_false(is_type("application/grpc-web"));
	assert_false(is_type("application/grp"));
	assert_false(is_type("application/json"));
	assert_false(is_type(""));
}

/* However it is cut, the message is the same. */
static void test_pieces(void **state)
{
	uint8_t wire[GRPC_HEAD_BYTES + 40];
	grpc_head_write(wire, 40);
	for (uint8_t i = 0; i < 40; i++)
		wire[GRPC_HEAD_BYTES + i] = i;
	for (size_t first = 0; first <= sizeof(wire); first++)
		for (size_t step = 1; step <= sizeof(wire); step++) {
			struct grpc_inbox inbox = { 0 };
			assert_int_equal(grpc_inbox_take(&inbox, wire, first, 40), 0);
			for (size_t at = first; at < sizeof(wire); at += step) {
				size_t n = sizeof(wire) - at < step ? sizeof(wire) - at : step;
				assert_false(grpc_inbox_is_complete(&inbox));
				assert_int_equal(grpc_inbox_take(&inbox, wire + at, n, 40), 0);
			}
			assert_true(grpc_inbox_is_complete(&inbox));
			assert_int_equal(inbox.size, 40);
			assert_memory_equal(inbox.data, wire + GRPC_HEAD_BYTES, 40);
			grpc_inbox_free(&inbox);
		}
}

static int take(const char *wire, size_t size, size_t most)
{
	struct grpc_inbox inbox = { 0 };
	int r = grpc_inbox_take(&inbox, (const uint8_t *)wire, size, most);
	grpc_inbox_free(&inbox);
	return r;
}

static void test_hostile_messages(void **state)
{
	struct grpc_inbox inbox = { 0 };
	assert_int_equal(take("\0\0\0\0\5", 5, 4), -EMSGSIZE);
	assert_int_equal(take("\0\xff\xff\xff\xff", 5, 1 << 20), -EMSGSIZE);
	assert_int_equal(take("\1\0\0\0\1", 5, 10), -EOPNOTSUPP);
	assert_int_equal(take("\0\0\0\0\1ab", 7, 10), -EPROTO);
	assert_int_equal(take("\0\0\0\0\0\0", 6, 10), -EPROTO);
	/* A great length costs nothing before its bytes are there. */
	assert_int_equal(grpc_inbox_take(&inbox, (const uint8_t *)"\0\x40\0\0\0abc", 8, 1U << 31),
			 0);
	assert_true(inbox.room <= 8);
	assert_false(grpc_inbox_is_complete(&inbox));
	grpc_inbox_free(&inbox);
	/* An empty message is one. */
	assert_int_equal(grpc_inbox_take(&inbox, (const uint8_t *)"\0\0\0\0", 4, 0), 0);
	assert_false(grpc_inbox_is_complete(&inbox));
	assert_int_equal(grpc_inbox_take(&inbox, (const uint8_t *)"\0", 1, 0), 0);
	assert_true(grpc_inbox_is_complete(&inbox));
	grpc_inbox_free(&inbox);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_statuses), cmocka_unit_test(test_texts),
		cmocka_unit_test(test_timeouts), cmocka_unit_test(test_content_types),
		cmocka_unit_test(test_pieces),   cmocka_unit_test(test_hostile_messages),
	};
	return cmocka_run_group_tests_name("grpc", tests, NULL, NULL);
}
