/* Which clients may read metrics, by the settings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/config/config.h"
#include "daemon/export/metrics/metrics.h"

static int check(const char *listen, const char *file, bool is_open, struct error *err)
{
	struct config config;
	config_default(&config);
	assert_int_equal(settings_set(&config_settings, &config, "metrics_listen", listen, NULL), 0);
	assert_int_equal(settings_set(&config_settings, &config, "metrics_token_file", file, NULL),
			 0);
	config.metrics_open = is_open;
	return metrics_check(&config, err);
}

static void test_beyond_the_machine_needs_a_token_or_a_word(void **state)
{
	struct error err = { 0 };
	assert_int_equal(check("off", "none", false, &err), 0);
	assert_int_equal(check("127.0.0.1:9400", "none", false, &err), 0);
	assert_int_equal(check("0.0.0.0:9400", "none", false, &err), -EACCES);
	assert_non_null(strstr(err.text, "'0.0.0.0:9400'"));
	assert_non_null(strstr(err.text, "metrics_token_file"));
	assert_non_null(strstr(err.text, "metrics_open = on"));
	assert_int_equal(check("0.0.0.0:9400", "/etc/token", false, &err), 0);
	assert_int_equal(check("0.0.0.0:9400", "none", true, &err), 0);
	assert_int_equal(check("off", "token", false, &err), -EINVAL);
	assert_non_null(strstr(err.text, "'token': must be a full path"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_beyond_the_machine_needs_a_token_or_a_word),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
