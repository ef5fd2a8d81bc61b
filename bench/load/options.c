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
	{ "--kernel-us", WHOLE, AT(kernel_us), 1, 1e7, 1000,
	  "duration of one kernel on an idle GPU, in microseconds" },
	{ "--blocks", WHOLE, AT(blocks), 1, 1e6, 132, "blocks of a kernel, of 256 threads each" },
	{ "--seconds", REAL, AT(seconds), 0.01, 1e6, 10, "length of the run, in seconds" },
	{ "--kernels", WHOLE, AT(kernels), 0, 1e12, 0,
	  "end after this many kernels, or after --seconds; 0: after --seconds only" },
	{ "--streams", WHOLE, AT(streams), 1, LANES_MAX, 1,
	  "number of streams, used in turn; small kernels of several streams can overlap" },
	{ "--graph", FLAG, AT(graph), 0, 0, 0, "launch graphs of about 2 ms instead of kernels" },
	{ "--cooperative", FLAG, AT(cooperative), 0, 0, 0,
	  "launch cooperative kernels; not with --graph" },
	{ "--processes", WHOLE, AT(processes), 1, 64, 1,
	  "number of processes, each with its own streams; reports have the process as \"id\"" },
	{ "--burst", WHOLE, AT(burst), 0, 1e5, 0,
	  "every --period-ms launch this many kernels and wait for them; the last line reports latencies" },
	{ "--period-ms", REAL, AT(period_ms), 0.1, 1e6, 50,
	  "with --burst: time from the start of one burst to the next, in milliseconds" },
	{ "--warmup", REAL, AT(warmup_s), 0, 1e6, 0,
	  "with --burst: leave the first N seconds out of the latencies" },
	{ "--trace", TEXT, AT(trace), 0, 0, 0,
	  "be busy only in the phases in FILE, lines of ROW BEGIN_S END_S" },
	{ "--trace-row", WHOLE, AT(trace_row), 0, 63, 0, "with --trace: the ROW to use" },
	{ "--sync-every", WHOLE, AT(sync_every), 0, 1e9, 0,
	  "wait for the GPU after every N launches; 0: never" },
	{ "--prepare-us", REAL, AT(prepare_us), 0, 1e6, 0,
	  "in every other phase, spend N microseconds of CPU time before each launch, as a training "
	  "program does; streams are kept 20 ms ahead" },
	{ "--phase", WHOLE, AT(phase), 1, 1e6, 50, "with --prepare-us: launches in a phase" },
	{ "--mib", WHOLE, AT(mib), 0, 1e7, 0, "hold this much GPU memory, in MiB" },
	{ "--alloc-over", FLAG, AT(alloc_over), 0, 0, 0,
	  "try once to allocate more than the driver reports as total memory" },
	{ "--calibrate-only", FLAG, AT(calibrate_only), 0, 0, 0,
	  "measure how many loop iterations a kernel of --kernel-us needs, print that, and end" },
	{ "--iters", WHOLE, AT(iters), 0, 4e9, 0,
	  "loop iterations of a kernel, as --calibrate-only printed on the idle GPU; 0: measure at the start" },
	{ "--report-every", REAL, AT(report_every_s), 0, 1e6, 1,
	  "seconds between reports; 0: no reports" },
	{ "--start-at", REAL, AT(start_at_s), 0, 1e11, 0, "start launching at this Unix time" },
	{ "--json", FLAG, AT(json), 0, 0, 0, "print JSON, one object per line" },
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
	     "Keeps a GPU busy with kernels of known duration and reports the share of the GPU that\n"
	     "they got. Defaults are in parentheses.\n");
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
