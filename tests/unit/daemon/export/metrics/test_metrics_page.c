/* The rows, and their output for figures that the test makes up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/export/metrics/metric.h"
#include "daemon/memory/swap/swap_orders.h"

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);
	return n >= m && !strcmp(text + n - m, end);
}

static void test_rows_are_as_prometheus_wants_them(void **state)
{
	for (size_t i = 0; i < metrics_row_count; i++) {
		const struct metric *m = &metrics_rows[i];
		bool is_counter = m->type == EXPOSITION_COUNTER;
		char unit[32];
		if (strncmp(m->name, "allot_", 6) != 0 || ends_with(m->name, "_total") != is_counter)
			fail_msg("%s", m->name);
		/* Names of bytes, seconds and ratios end with their unit. */
		snprintf(unit, sizeof(unit), "_%s%s", m->unit, is_counter ? "_total" : "");
		if (strchr("bsr", m->unit[0]) && m->unit[0] && !ends_with(m->name, unit))
			fail_msg("%s: is in %s", m->name, m->unit);
		if (!ends_with(m->help, "."))
			fail_msg("%s: no sentence", m->name);
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(m->name, metrics_rows[k].name);
	}
}

/* One of everything, and nothing that has a validity bit. */
static struct metrics_figures one_of_each(void)
{
	static struct metrics_card card;
	static struct metrics_tenant tenant;
	static struct metrics_tenant_device tenant_device;
	static struct metrics_container container;
	static struct metrics_container_device container_device;
	card = (struct metrics_card){ .labels = "device=\"0\"", .name = "A", .policy = "lease" };
	tenant = (struct metrics_tenant){
		.labels = "tenant=\"t\"", .id = "1", .on_full = "fail", .condition = TENANT_WAITING
	};
	tenant_device = (struct metrics_tenant_device){ .labels = "tenant=\"t\",device=\"0\"",
							.promise.cores_pct = 45.5,
							.cores_delta_pct = 1.5,
							.lessee.account.charged_ns = 2500000000,
							.lessee.stopped = true };
	container = (struct metrics_container){ .labels = "container=\"c\"" };
	container_device = (struct metrics_container_device){ .labels = "container=\"c\"" };
	return (struct metrics_figures){ .daemon = { .version = "1", .driver = "2" },
					 .card_count = 1,
					 .card = &card,
					 .tenant_count = 1,
					 .tenant = &tenant,
					 .tenant_device_count = 1,
					 .tenant_device = &tenant_device,
					 .container_count = 1,
					 .container = &container,
					 .container_device_count = 1,
					 .container_device = &container_device };
}

static char *write_page(const struct metrics_figures *f)
{
	char *text;
	size_t length;
	assert_int_equal(metrics_write_sets(&(struct metric_set){ metrics_rows, metrics_row_count },
					    1, f, &text, &length),
			 0);
	assert_int_equal(length, strlen(text));
	return text;
}

static void assert_has(const char *page, const char *line)
{
	char whole[256];
	snprintf(whole, sizeof(whole), "\n%s\n", line);
	if (!strstr(page, whole))
		fail_msg("'%s' is not there", line);
}

static void assert_lacks(const char *page, const char *name)
{
	if (strstr(page, name))
		fail_msg("'%s' is there", name);
}

static void test_values_come_in_base_units(void **state)
{
	struct metrics_figures f = one_of_each();
	char *page = write_page(&f);
	assert_has(page, "allot_tenant_cores_asked_ratio{tenant=\"t\",device=\"0\"} 0.455");
	assert_has(page, "allot_tenant_cores_delta_ratio{tenant=\"t\",device=\"0\"} 0.015");
	assert_has(page, "allot_tenant_gpu_seconds_total{tenant=\"t\",device=\"0\"} 2.5");
	assert_has(page, "allot_tenant_stopped{tenant=\"t\",device=\"0\"} 1");
	assert_has(page, "allot_build_info{version=\"1\",driver=\"2\",simulated=\"false\"} 1");
	free(page);
}

static void test_what_is_not_known_is_absent(void **state)
{
	struct metrics_figures f = one_of_each();
	char *page = write_page(&f);
	assert_lacks(page, "allot_device_memory_used_bytes");
	assert_lacks(page, "allot_tenant_memory_wait");
	assert_lacks(page, "allot_tenant_memory_wanted");
	assert_lacks(page, "allot_tenant_swap");
	assert_lacks(page, "allot_tenant_elastic");
	assert_lacks(page, "allot_gpu_tasks");
	assert_lacks(page, "allot_containers");
	assert_lacks(page, "allot_daemon_resident");
	assert_lacks(page, "allot_tenant_step");
	free(page);
	f.card->used_known = true;
	f.tenant->is_queued = true;
	f.tenant->wait_place = 2;
	f.tenant->wait_ns = 1250000000;
	f.tenant_device->waits = true;
	f.tenant->swap_state = "out";
	f.daemon.is_watching = true;
	page = write_page(&f);
	assert_has(page, "allot_device_memory_used_bytes{device=\"0\"} 0");
	assert_has(page, "allot_tenant_memory_wait_place{tenant=\"t\"} 2");
	assert_has(page, "allot_tenant_memory_wait_seconds{tenant=\"t\"} 1.25");
	assert_has(page, "allot_tenant_memory_wanted_bytes{tenant=\"t\",device=\"0\"} 0");
	assert_has(page, "allot_tenant_swap_state{tenant=\"t\",state=\"out\"} 1");
	assert_has(page, "allot_tenant_swap_state{tenant=\"t\",state=\"in\"} 0");
	assert_has(page, "allot_containers{state=\"waiting\"} 0");
	free(page);
	for (unsigned i = 0; i < SWAP_TEXTS; i++) {
		char line[96];
		f.tenant->swap_state = swap_text(i);
		snprintf(line, sizeof(line), "allot_tenant_swap_state{tenant=\"t\",state=\"%s\"} 1",
			 f.tenant->swap_state);
		page = write_page(&f);
		assert_has(page, line);
		free(page);
	}
}

static void test_steps_are_a_summary(void **state)
{
	struct metrics_figures f = one_of_each();
	struct step_figures *s = &f.tenant_device->lessee.steps;
	s->count = 7;
	s->sum_ns = 3500000000;
	char *page = write_page(&f);
	assert_has(page, "# TYPE allot_tenant_step_seconds summary");
	assert_has(page, "allot_tenant_step_seconds_sum{tenant=\"t\",device=\"0\"} 3.5");
	assert_has(page, "allot_tenant_step_seconds_count{tenant=\"t\",device=\"0\"} 7");
	assert_lacks(page, "quantile");
	free(page);
	s->is_known = true;
	s->p50_ns = 12500000;
	s->p99_ns = 40000000;
	page = write_page(&f);
	assert_has(page,
		   "allot_tenant_step_seconds{tenant=\"t\",device=\"0\",quantile=\"0.5\"} 0.0125");
	assert_has(page,
		   "allot_tenant_step_seconds{tenant=\"t\",device=\"0\",quantile=\"0.99\"} 0.04");
	free(page);
}

static void test_one_state_is_true(void **state)
{
	struct metrics_figures f = one_of_each();
	for (unsigned i = 0; i < TENANT_CONDITIONS; i++) {
		f.tenant->condition = (enum tenant_condition)i;
		char *page = write_page(&f);
		for (unsigned k = 0; k < TENANT_CONDITIONS; k++) {
			char line[128];
			snprintf(line, sizeof(line),
				 "allot_tenant_state{tenant=\"t\",state=\"%s\"} %d",
				 tenant_condition_name((enum tenant_condition)k), i == k);
			assert_has(page, line);
		}
		free(page);
	}
}

static void test_another_name_for_a_figure(void **state)
{
	struct metrics_figures f = one_of_each();
	struct metric alias;
	char *text;
	size_t length;
	for (size_t i = 0; i < metrics_row_count; i++)
		if (!strcmp(metrics_rows[i].name, "allot_tenant_gpu_seconds_total"))
			alias = metrics_rows[i];
	alias.name = "other_seconds_total";
	assert_int_equal(
		metrics_write_sets(&(struct metric_set){ &alias, 1 }, 1, &f, &text, &length), 0);
	assert_non_null(strstr(text, "\nother_seconds_total{tenant=\"t\",device=\"0\"} 2.5\n"));
	free(text);
}

static void test_every_row_is_listed(void **state)
{
	char *text;
	size_t size, lines = 0;
	FILE *out = open_memstream(&text, &size);
	metrics_print_list(out);
	fclose(out);
	for (const char *c = text; *c; c++)
		lines += *c == '\n';
	assert_int_equal(lines, metrics_row_count + metrics_row_count_hami +
					metrics_row_count_gpu_manager + 2);
	/* A bar in a text would be a column. */
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		unsigned bars = 0;
		for (const char *c = line; *c; c++)
			bars += *c == '|';
		assert_int_equal(bars, 6);
	}
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows_are_as_prometheus_wants_them),
		cmocka_unit_test(test_values_come_in_base_units),
		cmocka_unit_test(test_what_is_not_known_is_absent),
		cmocka_unit_test(test_steps_are_a_summary),
		cmocka_unit_test(test_one_state_is_true),
		cmocka_unit_test(test_another_name_for_a_figure),
		cmocka_unit_test(test_every_row_is_listed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
