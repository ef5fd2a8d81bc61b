/* What is made of rows: a page of samples, and the table for people. */
#include "node/metrics/metric.h"

int metrics_write(const struct metric *rows, size_t count, const struct metrics_figures *f,
		  char **ret_text, size_t *ret_length)
{
	struct exposition x = { 0 };
	for (size_t i = 0; i < count; i++) {
		exposition_family(&x, rows[i].name, rows[i].type, rows[i].help);
		rows[i].emit(&rows[i], f, &x);
	}
	return exposition_end(&x, ret_text, ret_length);
}

void metrics_print_list(FILE *out)
{
	fputs("| metric | type | unit | labels | what |\n| --- | --- | --- | --- | --- |\n", out);
	for (size_t i = 0; i < metrics_row_count; i++) {
		const struct metric *m = &metrics_rows[i];
		fprintf(out, "| `%s` | %s | %s | %s | %s |\n", m->name,
			exposition_type_name(m->type), m->unit, m->labels, m->help);
	}
}
