/* The command line of allot-load: one row an option, from which parsing, bounds
 * and help text come. */
#pragma once

#include <stdbool.h>

struct options {
	double kernel_us;
	double blocks;
	double seconds;
	double kernels; /* so many, and end; 0: as many as fit into seconds */
	double streams;
	double sync_every;     /* launches; 0: never */
	double prepare_us;     /* before each launch of every other phase; 0: never */
	double phase;          /* launches of such a phase */
	double mib;            /* device memory held; 0: none */
	double iters;          /* 0: calibrate */
	double report_every_s; /* 0: the last line only */
	double start_at_s;     /* Unix time; 0: at once */
	double processes;      /* each with streams of its own */
	double burst;          /* kernels at a time, every period_ms; 0: as many as are taken */
	double period_ms;
	double warmup_s;
	double trace_row;  /* the tenant whose phases of the trace are played */
	const char *trace; /* file of phases, trace.h; NULL: busy all the time */
	bool graph;
	bool cooperative;
	bool alloc_over;
	bool calibrate_only;
	bool json;
};

/* Fills `o` with defaults and what the command line says. Ends the program with
 * status 0 after --help, and with 2 and a line on what is wrong otherwise. */
void options_parse(struct options *o, int argc, char **argv);
