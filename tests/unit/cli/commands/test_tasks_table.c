#include "../test.h"

#include "cli/commands/tasks_table.h"

static char *render(const char *json)
{
	json_t *reply = json_loads(json, 0, NULL);
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(reply);
	tasks_table_write(reply, out);
	fclose(out);
	json_decref(reply);
	return text;
}

static void test_both(void **state)
{
	char *text = render(
		"{\"containers\":[{\"id\":\"3f4c1a0b9d8e7f6a5b4c\",\"engine\":\"docker\",\"state\":"
		"\"waiting\",\"tasks\":1,\"frozen_s\":2.1,\"devices\":[{\"index\":0,"
		"\"memory_used_bytes\":83886080,\"used_s\":0.25},{\"index\":1,"
		"\"memory_used_bytes\":83886080,\"used_s\":0.5}],\"name\":\"trainer\","
		"\"pod\":\"job-0\",\"namespace\":\"team\"},"
		"{\"id\":\"aaaaaaaaaaaaaaa\",\"engine\":\"podman\",\"state\":\"ended\",\"tasks\":0,"
		"\"name\":null}],\"tasks\":["
		"{\"pid\":7,\"name\":\"old\",\"container\":null,\"tenant\":\"a\",\"lasted_s\":65,"
		"\"ended\":true,\"devices\":[{\"index\":0,\"memory_used_bytes\":0,"
		"\"memory_most_bytes\":1048576,\"used_s\":3}]},"
		"{\"pid\":12345,\"name\":\"python3\",\"container\":\"3f4c1a0b9d8e7f6a5b4c\","
		"\"tenant\":null,\"lasted_s\":4,\"ended\":false,\"devices\":[]}]}");
	assert_string_equal(
		text, "CONTAINER     ENGINE      STATE     TASKS     MEMORY  GPU TIME   FROZEN  "
		      "NAME\n"
		      "3f4c1a0b9d8e  docker      waiting       1  160.0 MiB      0.8s     2.1s  "
		      "team/job-0/trainer\n"
		      "aaaaaaaaaaaa  podman      ended         0        0 B      0.0s     0.0s\n"
		      "\n"
		      "    PID  NAME             CONTAINER     TENANT              MEMORY  GPU "
		      "TIME    LASTED"
		      "  STATE\n"
		      "      7  old              -             a                  1.0 MiB      "
		      "3.0s     1m05s"
		      "  ended\n"
		      "  12345  python3          3f4c1a0b9d8e  -                      0 B      "
		      "0.0s      4.0s"
		      "  runs\n");
	free(text);
}

static void test_nothing(void **state)
{
	char *text = render("{}");
	assert_string_equal(text, "    PID  NAME             CONTAINER     TENANT              "
				  "MEMORY  GPU TIME    LASTED  STATE\n");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both),
		cmocka_unit_test(test_nothing),
	};
	return cmocka_run_group_tests_name("tasks_table", tests, NULL, NULL);
}
