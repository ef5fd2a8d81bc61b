#include "trace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fail(const char *path, unsigned line, const char *what)
{
	fprintf(stderr, "allot-load: --trace: %s:%u: %s\n", path, line, what);
	exit(2);
}

static void add(struct trace *t, const char *path, unsigned line, double begin_s, double end_s)
{
	/* Written so that a NaN fails too. */
	if (!(begin_s >= 0 && end_s > begin_s && end_s < 1e6))
		fail(path, line, "a phase begins at 0 s or later, and ends after it begins");
	if (t->count == TRACE_PHASES_MAX)
		fail(path, line, "too many phases");
	uint64_t begin_ns = (uint64_t)(begin_s * 1e9);
	if (t->count > 0 && begin_ns < t->phase[t->count - 1].end_ns)
		fail(path, line, "begins before the phase before it ends");
	t->phase[t->count++] = (struct trace_phase){ .begin_ns = begin_ns,
						     .end_ns = (uint64_t)(end_s * 1e9) };
}

void trace_read(struct trace *t, const char *path, unsigned row)
{
	FILE *file = fopen(path, "re");
	char text[256];
	unsigned line = 0;

	if (file == NULL) {
		fprintf(stderr, "allot-load: --trace: %s: %s\n", path, strerror(errno));
		exit(2);
	}
	t->count = 0;
	while (fgets(text, sizeof text, file) != NULL) {
		unsigned number;
		double begin_s, end_s;
		line++;
		if (text[strspn(text, " \t\n")] == '\0' || text[0] == '#')
			continue;
		if (sscanf(text, "%u %lf %lf", &number, &begin_s, &end_s) != 3)
			fail(path, line, "not ROW BEGIN_S END_S");
		if (number == row)
			add(t, path, line, begin_s, end_s);
	}
	fclose(file);
	if (t->count == 0) {
		fprintf(stderr, "allot-load: --trace: %s: no phase of row %u\n", path, row);
		exit(2);
	}
}
