#include "options.h"

#include "lanes.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind { WHOLE, REAL, FLAG, TEXT };

static const struct row {
	const char *name;
	enum kind kind;
	size_t offset;
	double low, high, preset;
	const char *help;
} rows[] = {
#define AT(field) offsetof(struct options, field)
	{ "--kernel-us", WHOLE, AT(kernel_us), 1, 1e7, 1000, "cost of a kernel alone, microseconds" },
	{ "--blocks", WHOLE, AT(blocks), 1, 1e6, 132, "blocks of 256 threads a kernel" },
	{ "--seconds", REAL, AT(seconds), 0.01, 1e6, 10, "length of the run" },
	{ "--kernels", WHOLE, AT(kernels), 0, 1e12, 0,
	  "so much work, and then end, if --seconds have not passed; 0: as much as fits into them" },
	{ "--streams", WHOLE, AT(streams), 1, LANES_MAX, 1,
	  "streams, used in turn; small kernels of several run at the same time" },
	{ "--graph", FLAG, AT(graph), 0, 0, 0, "launch graphs of about 2 ms instead of kernels" },
	{ "--cooperative", FLAG, AT(cooperative), 0, 0, 0,
	  "launch kernels as cooperative ones; not with --graph" },
	{ "--processes", WHOLE, AT(processes), 1, 64, 1,
	  "so many processes, each with its streams; their lines have an \"id\"" },
	{ "--burst", WHOLE, AT(burst), 0, 1e5, 0,
	  "launch so many kernels each --period-ms and wait for them; latencies on the last line" },
	{ "--period-ms", REAL, AT(period_ms), 0.1, 1e6, 50, "from one burst's due time to the next" },
	{ "--warmup", REAL, AT(warmup_s), 0, 1e6, 0,
	  "seconds from the beginning whose bursts don't count in the latencies" },
	{ "--trace", TEXT, AT(trace), 0, 0, 0,
	  "file of phases in which to be busy: lines of ROW BEGIN_S END_S" },
	{ "--trace-row", WHOLE, AT(trace_row), 0, 63, 0, "whose phases of --trace" },
	{ "--sync-every", WHOLE, AT(sync_every), 0, 1e9, 0, "synchronize after so many launches" },
	{ "--prepare-us", REAL, AT(prepare_us), 0, 1e6, 0,
	  "what is done without the GPU before each launch of every other phase, as a training "
	  "does; "
	  "streams are kept 20 ms ahead then" },
	{ "--phase", WHOLE, AT(phase), 1, 1e6, 50, "launches of such a phase" },
	{ "--mib", WHOLE, AT(mib), 0, 1e7, 0, "hold so much device memory" },
	{ "--alloc-over", FLAG, AT(alloc_over), 0, 0, 0,
	  "ask once for more than the total that the driver reports" },
	{ "--calibrate-only", FLAG, AT(calibrate_only), 0, 0, 0,
	  "print the turns of the loop and end" },
	{ "--iters", WHOLE, AT(iters), 0, 4e9, 0,
	  "turns of the loop, from --calibrate-only on the idle GPU; without it every run calibrates" },
	{ "--report-every", REAL, AT(report_every_s), 0, 1e6, 1,
	  "seconds between reports, 0 for none" },
	{ "--start-at", REAL, AT(start_at_s), 0, 1e11, 0, "Unix time at which to begin, all set up" },
	{ "--json", FLAG, AT(json), 0, 0, 0, "one JSON object a line" },
};

#define ROW_COUNT (sizeof rows / sizeof rows[0])

static void *field(struct options *o, const struct row *row)
{
	return (char *)o + row->offset;
}

static bool is_number(const struct row *r)
{
	return r->kind == WHOLE || r->kind == REAL;
}

static void print_help(void)
{
	puts("usage: allot-load [OPTION]...\n"
	     "Keeps a GPU busy with kernels of known cost and says what share of it they got.\n");
	for (size_t i = 0; i < ROW_COUNT; i++) {
		const struct row *r = &rows[i];
		char left[40], preset[32] = "";
		snprintf(left, sizeof left, "%s%s", r->name,
			 r->kind == FLAG   ? ""
			 : r->kind == TEXT ? " FILE"
					   : " N");
		if (is_number(r) && r->preset > 0)
			snprintf(preset, sizeof preset, " (%g)", r->preset);
		printf("  %-18s %s%s\n", left, r->help, preset);
	}
}

static void check_together(const struct options *o)
{
	const char *wrong = NULL;
	if (o->graph && o->cooperative)
		wrong = "--graph and --cooperative: only one of them";
	else if (o->burst > 0 && (o->graph || o->trace != NULL))
		wrong = "--burst: not with --graph or --trace";
	else if (o->kernels > 0 && (o->burst > 0 || o->trace != NULL))
		wrong = "--kernels: not with --burst or --trace";
	if (wrong != NULL) {
		fprintf(stderr, "allot-load: %s\n", wrong);
		exit(2);
	}
}

static void parse_number(struct options *o, const struct row *r, const char *text)
{
	char *end;
	errno = 0;
	double v = strtod(text, &end);
	if (errno != 0 || end == text || *end != '\0' || !(v >= r->low && v <= r->high) ||
	    (r->kind == WHOLE && v != floor(v))) {
		fprintf(stderr, "allot-load: %s: '%s' is not a %snumber from %.15g to %.15g\n",
			r->name, text, r->kind == WHOLE ? "whole " : "", r->low, r->high);
		exit(2);
	}
	memcpy(field(o, r), &v, sizeof v);
}

static const struct row *find_row(const char *name, size_t length)
{
	for (size_t i = 0; i < ROW_COUNT; i++)
		if (strlen(rows[i].name) == length && memcmp(rows[i].name, name, length) == 0)
			return &rows[i];
	return NULL;
}

void options_parse(struct options *o, int argc, char **argv)
{
	*o = (struct options){ 0 };
	for (size_t i = 0; i < ROW_COUNT; i++)
		if (is_number(&rows[i]))
			memcpy(field(o, &rows[i]), &rows[i].preset, sizeof rows[i].preset);

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--help") == 0) {
			print_help();
			exit(0);
		}
		const char *equals = strchr(argv[i], '=');
		size_t length = equals != NULL ? (size_t)(equals - argv[i]) : strlen(argv[i]);
		const struct row *r = find_row(argv[i], length);
		if (r == NULL || (r->kind == FLAG && equals != NULL)) {
			fprintf(stderr, "allot-load: unknown option '%s'; see --help\n", argv[i]);
			exit(2);
		}
		if (r->kind == FLAG) {
			*(bool *)field(o, r) = true;
			continue;
		}
		const char *value = equals != NULL ? equals + 1 : ++i < argc ? argv[i] : NULL;
		if (value == NULL) {
			fprintf(stderr, "allot-load: %s needs a %s\n", r->name,
				r->kind == TEXT ? "file" : "number");
			exit(2);
		}
		if (r->kind == TEXT)
			*(const char **)field(o, r) = value;
		else
			parse_number(o, r, value);
	}
	check_together(o);
}
