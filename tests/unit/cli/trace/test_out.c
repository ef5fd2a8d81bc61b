/* The file of a trace: JSON whatever is written, numbers to the nanosecond, and what a full disk does. */
#include "written.h"

#include <errno.h>
#include <fcntl.h>

static void test_an_event(void **state)
{
	struct out out;
	written_begin(&out);
	out_event(&out, 'X', "launch", 12, 34, 1234567, "saxpy");
	out_duration(&out, 5);
	out_args(&out);
	out_whole(&out, "blocks", UINT64_MAX);
	out_text(&out, "stream", "default");
	out_bool(&out, "leased", true);
	out_hex(&out, "address", 0x7f00);
	out_real(&out, "share", 0.5);
	out_event_end(&out);
	out_event(&out, 'i', NULL, -1, 0, 1000000000000000007, "free");
	out_event_end(&out);
	json_t *all = written_end(&out);
	assert_int_equal(json_array_size(events_of(all)), 2);
	assert_string_equal(json_string_value(json_object_get(all, "displayTimeUnit")), "ns");
	const json_t *e = find_event(all, "X", "saxpy", 0);
	assert_int_equal(number_of(e, "pid"), 12);
	assert_int_equal(number_of(e, "tid"), 34);
	assert_true(number_of(e, "ts") == 1234.567 && number_of(e, "dur") == 0.005);
	assert_string_equal(json_string_value(json_object_get(e, "cat")), "launch");
	assert_int_equal(json_integer_value(json_object_get(json_object_get(e, "args"), "blocks")),
			 INT64_MAX);
	assert_string_equal(text_of(e, "stream"), "default");
	assert_string_equal(text_of(e, "address"), "0x7f00");
	assert_true(number_of(e, "share") == 0.5);
	e = find_event(all, "i", "free", 0);
	assert_true(number_of(e, "pid") == -1);
	assert_true(number_of(e, "ts") == 1000000000000000.007);
	assert_string_equal(json_string_value(json_object_get(e, "s")), "t");
	json_decref(all);
}

/* Names come from programs: any bytes at all. */
static void test_any_name(void **state)
{
	static const struct {
		const char *name, *written;
	} rows[] = {
		{ "a\"b\\c", "a\"b\\c" },
		{ "tab\there", "tab?here" },
		{ "\x7f\x01", "??" },
		{ "gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f" },
		{ "\xe2\x82\xac\xf0\x9f\x98\x80", "\xe2\x82\xac\xf0\x9f\x98\x80" },
		{ "cut \xe2\x82", "cut ??" },
		{ "\xc0\xaf \xed\xa0\x80 \xf5\x80\x80\x80", "?? ??? ????" },
		{ "\xff", "?" },
		{ "", "" },
	};
	struct out out;
	written_begin(&out);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		out_event(&out, 'i', NULL, 1, 1, i, rows[i].name);
		out_event_end(&out);
	}
	json_t *all = written_end(&out);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_string_equal(json_string_value(json_object_get(
					    json_array_get(events_of(all), i), "name")),
				    rows[i].written);
	json_decref(all);
}

static void test_more_than_the_buffer(void **state)
{
	struct out out;
	written_begin(&out);
	for (uint64_t i = 0; i < 10000; i++) {
		out_event(&out, 'X', "launch", 1, 1, i, "kernel");
		out_duration(&out, i);
		out_event_end(&out);
	}
	assert_true(out.bytes > OUT_BUFFER_MAX);
	json_t *all = written_end(&out);
	assert_int_equal(json_array_size(events_of(all)), 10000);
	json_decref(all);
}

static void test_nothing_at_all(void **state)
{
	struct out out;
	written_begin(&out);
	json_t *all = written_end(&out);
	assert_int_equal(json_array_size(events_of(all)), 0);
	json_decref(all);
}

static void test_a_full_disk(void **state)
{
	struct out out = { .fd = open("/dev/full", O_WRONLY | O_CLOEXEC) };
	if (out.fd < 0)
		skip();
	out_begin(&out);
	for (int i = 0; i < 10000; i++) {
		out_event(&out, 'i', NULL, 1, 1, 0, "x");
		out_event_end(&out);
	}
	assert_int_equal(out.error, ENOSPC);
	out_begin_other(&out);
	assert_int_equal(out_end(&out), -ENOSPC);
	assert_int_equal(out.bytes, 0);
	close(out.fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_event),
		cmocka_unit_test(test_any_name),
		cmocka_unit_test(test_more_than_the_buffer),
		cmocka_unit_test(test_nothing_at_all),
		cmocka_unit_test(test_a_full_disk),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
