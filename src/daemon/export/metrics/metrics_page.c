/* Writes the tables of metrics as a page of samples, and as a Markdown table for the documentation. */
#include "daemon/export/metrics/metric.h"

int metrics_write_sets(const struct metric_set *sets, size_t set_count,
		       const struct metrics_figures *f, char **ret_text, size_t *ret_length)
{
	struct exposition x = { 0 };
	for (size_t k = 0; k < set_count; k++)
		for (size_t i = 0; i < sets[k].count; i++) {
			const struct metric *m = &sets[k].rows[i];
			exposition_family(&x, m->name, m->type, m->help);
			m->emit(m, f, &x);
		}
	return exposition_end(&x, ret_text, ret_length);
}

static void print_rows(const struct metric *rows, size_t count, FILE *out)
{
	for (size_t i = 0; i < count; i++)
		fprintf(out, "| `%s` | %s | %s | %s | %s |\n", rows[i].name,
			exposition_type_name(rows[i].type), rows[i].unit, rows[i].labels,
			rows[i].help);
}

void metrics_print_list(FILE *out)
{
	fputs("| metric | type | unit | labels | what |\n| --- | --- | --- | --- | --- |\n", out);
	print_rows(metrics_rows, metrics_row_count, out);
	print_rows(metrics_rows_hami, metrics_row_count_hami, out);
	print_rows(metrics_rows_gpu_manager, metrics_row_count_gpu_manager, out);
}
