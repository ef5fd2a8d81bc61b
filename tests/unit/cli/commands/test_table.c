#include "../test.h"

#include "cli/commands/table.h"

static char *render(const char *json, int width)
{
	json_t *list = json_loads(json, 0, NULL);
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(list);
	table_write(list, width, out);
	fclose(out);
	json_decref(list);
	return text;
}

static const char two_tenants[] =
	"{\"devices\":[{\"index\":0,\"uuid\":\"GPU-0\",\"name\":\"NVIDIA H200\","
	"\"memory_bytes\":150754820096,\"memory_used_bytes\":4294967296,\"busy_pct\":98.4}],"
	"\"tenants\":["
	"{\"name\":\"a\",\"id\":\"x\",\"state\":\"running\",\"devices\":[{\"index\":0,"
	"\"memory_quota_bytes\":4294967296,\"memory_used_bytes\":3435973836,\"cores_pct\":45,"
	"\"cores_limit_pct\":45,\"got_1s_pct\":45.12,\"got_60s_pct\":44.9,\"waited_s\":2.1,"
	"\"denied\":3}]},"
	"{\"name\":\"trainer-with-a-long-name\",\"id\":\"y\",\"state\":\"paused\",\"devices\":["
	"{\"index\":0,\"memory_used_bytes\":0,\"cores_limit_pct\":100},"
	"{\"index\":1,\"memory_used_bytes\":0,\"cores_limit_pct\":100}]}]}";

static size_t widest(const char *text)
{
	size_t most = 0;

	while (*text) {
		size_t length = strcspn(text, "\n");

		most = length > most ? length : most;
		text += length + (text[length] == '\n');
	}
	return most;
}

static void test_wide(void **state)
{
	char *text = render(two_tenants, 200);

	assert_string_equal(
		text,
		"GPU 0: NVIDIA H200, 140.4 GiB, 4.0 GiB used, 98 % busy\n"
		"\n"
		"                                          MEMORY          COMPUTE %\n"
		"TENANT                    GPU  STATE      ASKED      GOT  ASKED  LIMIT    1s   60s"
		"  REFUSED  WAITED\n"
		"a                           0  running  4.0 GiB  3.2 GiB     45     45  45.1  44.9"
		"        3    2.1s\n"
		"trainer-with-a-long-name    0  paused         -      0 B      -    100     -     -"
		"        0       -\n"
		"                            1                 -      0 B      -    100     -     -"
		"        0       -\n");
	free(text);
}

static void test_eighty_columns(void **state)
{
	char *text = render(two_tenants, 80);

	assert_true(widest(text) <= 80);
	assert_null(strstr(text, "WAITED"));
	assert_non_null(strstr(text, "trainer-"));
	assert_non_null(strstr(text, "~"));
	free(text);
}

static void test_narrow_keeps_names(void **state)
{
	char *text = render(two_tenants, 20);

	assert_non_null(strstr(text, "trainer~"));
	free(text);
}

/* Where a tenant had steps, and on a terminal that is wide enough. */
static void test_steps(void **state)
{
	static const char list[] =
		"{\"devices\":[],\"tenants\":[{\"name\":\"a\",\"state\":\"running\",\"devices\":[{"
		"\"index\":0,\"steps\":{\"per_second\":80.25,\"p50_ms\":12.04,\"p99_ms\":31.5}}]},"
		"{\"name\":\"b\",\"state\":\"idle\",\"devices\":[{\"index\":0,\"steps\":null}]}]}";
	char *text = render(list, 200);

	assert_non_null(strstr(text, "     p50     p99  per s  REFUSED"));
	assert_non_null(strstr(text, "  12.0ms  31.5ms   80.2        0"));
	assert_non_null(strstr(text, "       -       -      -        0"));
	free(text);
	text = render(list, 80);
	assert_null(strstr(text, "p99"));
	assert_non_null(strstr(text, "REFUSED"));
	free(text);
	text = render(two_tenants, 200);
	assert_null(strstr(text, "p99"));
	free(text);
}

/* In a pipe or a file nothing is cut and no column that says something is left out. */
/* A tenant that misses its guarantee by two points, beside one that is off by less than a point. */
static void test_delta(void **state)
{
	static const char list[] =
		"{\"devices\":[],\"tenants\":[{\"name\":\"a\",\"state\":\"running\",\"devices\":[{"
		"\"index\":0,\"got_60s_pct\":28,\"delta_60s_pct\":2}]},"
		"{\"name\":\"b\",\"state\":\"idle\",\"devices\":[{\"index\":0,\"got_60s_pct\":30,"
		"\"delta_60s_pct\":0.4}]}]}";
	char *text = render(list, 200);

	assert_non_null(strstr(text, " 60s  DELTA  REFUSED"));
	assert_non_null(strstr(text, "28.0    2.0"));
	assert_non_null(strstr(text, "30.0      -"));
	free(text);
	text = render(two_tenants, 200);
	assert_null(strstr(text, "DELTA"));
	free(text);
}

static void test_unlimited(void **state)
{
	static const char name[] = "job-1234567-a-name-of-sixty-three-characters-is-the-longest-one";
	char container[300], list[1000];
	char *text;

	memset(container, 'c', sizeof(container) - 1);
	container[sizeof(container) - 1] = '\0';
	snprintf(list, sizeof(list),
		 "{\"devices\":[],\"tenants\":[{\"name\":\"%s\",\"priority\":3,"
		 "\"containers\":[{\"id\":\"1\",\"name\":\"%s\"},{\"id\":\"2\"}],"
		 "\"devices\":[{\"index\":0,\"waited_s\":2.1}]}]}",
		 name, container);
	text = render(list, TABLE_UNLIMITED);
	assert_int_equal(strlen(name), 63);
	assert_non_null(strstr(text, name));
	assert_non_null(strstr(text, container));
	assert_non_null(strstr(text, "cc +1\n"));
	assert_non_null(strstr(text, "WAITED"));
	assert_null(strchr(text, '~'));
	free(text);
}

/* Who waits for memory, its place and since when; and then the use that it goes by. */
static void test_queued(void **state)
{
	char *text = render(
		"{\"devices\":[],\"tenants\":[{\"name\":\"a\",\"state\":\"queued\",\"on_full\":"
		"\"wait\","
		"\"use_s\":75,\"memory_wait\":{\"waited_s\":12.34,\"place\":2,\"passed\":0},"
		"\"devices\":[{\"index\":0}]}]}",
		200);

	assert_non_null(strstr(text, "a         0  queued #2 12.3s"));
	assert_non_null(strstr(text, " USE\n"));
	assert_non_null(strstr(text, " 1m15s\n"));
	free(text);
	/* Where nobody waits, use is not shown. */
	text = render(two_tenants, 200);
	assert_null(strstr(text, "USE\n"));
	free(text);
}

/* Where memory can be moved off the card there is a column for what is not on it. */
static void test_swapped(void **state)
{
	char *text = render("{\"devices\":[],\"tenants\":["
			    "{\"name\":\"a\",\"swap\":{\"swapped_bytes\":2147483648},"
			    "\"devices\":[{\"index\":0,\"memory_used_bytes\":3221225472}]},"
			    "{\"name\":\"b\",\"swap\":null,\"devices\":[{\"index\":0}]}]}",
			    100);

	assert_non_null(strstr(text, "GOT  SWAPPED"));
	assert_non_null(strstr(text, "3.0 GiB  2.0 GiB"));
	free(text);
	text = render("{\"devices\":[],\"tenants\":[{\"name\":\"b\",\"swap\":null,"
		      "\"devices\":[{\"index\":0}]}]}",
		      100);
	assert_null(strstr(text, "SWAPPED"));
	free(text);
}

/* Where all have the usual priority it is no column. */
static void test_priority(void **state)
{
	char *text = render(
		"{\"devices\":[],\"tenants\":["
		"{\"name\":\"a\",\"priority\":-5,\"devices\":[{\"index\":0},{\"index\":1}]},"
		"{\"name\":\"b\",\"priority\":0,\"devices\":[{\"index\":0}]}]}",
		100);

	assert_non_null(strstr(text, "60s  PRIORITY  REFUSED"));
	assert_non_null(strstr(text, "        -5        0"));
	free(text);
	text = render("{\"devices\":[],\"tenants\":[{\"name\":\"b\",\"priority\":0,"
		      "\"devices\":[{\"index\":0}]}]}",
		      100);
	assert_null(strstr(text, "PRIORITY"));
	free(text);
}

/* Where a tenant's processes live in a container: what that is called, or its id. */
static void test_containers(void **state)
{
	static const char list[] =
		"{\"devices\":[],\"tenants\":["
		"{\"name\":\"a\",\"containers\":[{\"id\":\"3f4c1a0b9d8e7f6a5b4c\",\"name\":null}],"
		"\"devices\":[{\"index\":0}]},"
		"{\"name\":\"b\",\"containers\":[{\"id\":\"1\",\"name\":\"web\",\"pod\":null},"
		"{\"id\":\"2\"}],\"devices\":[{\"index\":0}]},"
		"{\"name\":\"c\",\"containers\":[],\"devices\":[{\"index\":0}]}]}";
	char *text = render(list, 200);

	assert_non_null(strstr(text, "  CONTAINER\n"));
	assert_non_null(strstr(text, "  3f4c1a0b9d8e\n"));
	assert_non_null(strstr(text, "  web +1\n"));
	free(text);
	text = render(list, 60);
	assert_null(strstr(text, "CONTAINER"));
	free(text);
	text = render(two_tenants, 200);
	assert_null(strstr(text, "CONTAINER"));
	free(text);
}

static void test_lent(void **state)
{
	char *text = render(
		"{\"devices\":[],\"tenants\":[{\"name\":\"a\",\"devices\":["
		"{\"index\":0,\"cores_pct\":30,\"cores_limit_pct\":30,\"lent_pct\":42.4},"
		"{\"index\":1,\"cores_pct\":20,\"cores_limit_pct\":20,\"lent_pct\":0.0}]}]}",
		80);

	assert_non_null(strstr(text, "30  30+42 "));
	assert_non_null(strstr(text, "20     20 "));
	free(text);
}

static void test_nothing(void **state)
{
	char *text = render("{\"devices\":[],\"tenants\":[]}", 80);

	assert_string_equal(text, "no tenants\n");
	free(text);
	text = render("{}", 80);
	assert_string_equal(text, "no tenants\n");
	free(text);
}

static void test_odd_values(void **state)
{
	/* Wrong types and a name longer than any cell: nothing but "-" and a cut name. */
	char name[300];
	char json[500];
	char *text;

	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	snprintf(json, sizeof(json),
		 "{\"devices\":[{}],\"tenants\":[{\"name\":\"%s\",\"state\":7,\"devices\":[{"
		 "\"index\":"
		 "\"x\",\"memory_used_bytes\":\"y\",\"got_1s_pct\":null}]}]}",
		 name);
	text = render(json, 80);
	assert_true(widest(text) <= 80);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wide),
		cmocka_unit_test(test_eighty_columns),
		cmocka_unit_test(test_narrow_keeps_names),
		cmocka_unit_test(test_steps),
		cmocka_unit_test(test_delta),
		cmocka_unit_test(test_unlimited),
		cmocka_unit_test(test_queued),
		cmocka_unit_test(test_swapped),
		cmocka_unit_test(test_priority),
		cmocka_unit_test(test_containers),
		cmocka_unit_test(test_lent),
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_odd_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
