#include "together.h"

#include <math.h>
#include <stdio.h>

static const char *length_text(uint64_t ns, char *text, size_t size)
{
	if (ns < MS)
		snprintf(text, size, "%g us", (double)ns / 1e3);
	else
		snprintf(text, size, "%g ms", (double)ns / 1e6);
	return text;
}

static void add_rows(struct gpu_model *m, struct row *rows, int count)
{
	assert_in_range(count, 1, TOGETHER_MOST);
	for (int i = 0; i < count; i++) {
		rows[i].index = gpu_model_add(m, rows[i].share, &rows[i].load);
		for (int more = 1; more < rows[i].processes; more++)
			gpu_model_add_process(m, rows[i].index, &rows[i].load);
	}
}

/* Runs, and writes the results into the rows. */
static void measure(struct gpu_model *m, struct row *rows, int count, uint64_t run_ns)
{
	uint64_t before[TOGETHER_MOST], charged[TOGETHER_MOST], last[TOGETHER_MOST];
	double squares[TOGETHER_MOST] = { 0 };
	int windows = (int)(run_ns / SECOND);

	for (int i = 0; i < count; i++) {
		last[i] = before[i] = gpu_model_work_ns(m, rows[i].index);
		charged[i] = arbiter_account(gpu_model_arbiter(m), rows[i].index).charged_ns;
	}
	for (int window = 0; window < windows; window++) {
		gpu_model_run(m, SECOND);
		for (int i = 0; i < count; i++) {
			uint64_t work = gpu_model_work_ns(m, rows[i].index);
			double pct = 100.0 * (double)(work - last[i]) / (double)SECOND;

			squares[i] += pct * pct;
			last[i] = work;
		}
	}
	for (int i = 0; i < count; i++) {
		struct row *r = &rows[i];
		uint64_t now = arbiter_account(gpu_model_arbiter(m), r->index).charged_ns;

		r->got_pct = 100.0 * (double)(last[i] - before[i]) / (double)run_ns;
		r->charged_pct = 100.0 * (double)(now - charged[i]) / (double)run_ns;
		r->deviation = sqrt(fmax(0, squares[i] / windows - r->got_pct * r->got_pct));
	}
}

double together_after(const char *name, struct row *rows, int count, uint64_t warm_ns,
		      uint64_t run_ns, const struct gpu_model_config *config)
{
	struct gpu_model *m = gpu_model_new(config);
	double sum = 0;

	add_rows(m, rows, count);
	gpu_model_run(m, warm_ns);
	measure(m, rows, count, run_ns);
	for (int i = 0; i < count; i++) {
		const struct row *r = &rows[i];
		char text[32];

		sum += r->got_pct;
		table_add("%-34s %8s  %3.0f / %3.0f  %6.2f  %6.2f  %6.2f\n", i ? "" : name,
			  length_text(r->load.kernel_ns, text, sizeof(text)), r->share.cores_pct,
			  r->share.limit_pct, r->got_pct, r->charged_pct, r->deviation);
	}
	if (count > 1)
		table_add("%-34s %8s  %9s  %6.2f\n", "", "", "sum", sum);
	for (int i = 0; i < count; i++)
		if (rows[i].most > 0 &&
		    (rows[i].got_pct < rows[i].least || rows[i].got_pct > rows[i].most))
			fail_msg("%s, number %d: %.2f, not from %.2f to %.2f", name, i + 1,
				 rows[i].got_pct, rows[i].least, rows[i].most);
	assert_int_equal(gpu_model_violations(m), 0);
	gpu_model_free(m);
	return sum;
}

double together(const char *name, struct row *rows, int count, uint64_t run_ns,
		const struct gpu_model_config *config)
{
	return together_after(name, rows, count, 2 * SECOND, run_ns, config);
}

int together_print(void **state)
{
	printf("\nPercent of the GPU's time: work done, charged, standard deviation of work in 1 s "
	       "windows.\n"
	       "%-34s %8s  %9s  %6s  %6s  %6s\n%s",
	       "case", "kernels", "cores/lim", "work", "charge", "sd 1 s", table_text());
	return 0;
}
