/* The output of a finished run: a line for people, or one of JSON. */
#pragma once

#include "run.h"

/* Of an allocation that should not be granted. */
struct refusal {
	bool tried;
	size_t asked_bytes;
	CUresult result;
};

/* Sorts the run's samples. */
void report_end(struct run *r, uint64_t end_ns, const struct refusal *refusal,
		const struct driver *d);
void report_calibration(const struct kernel *k, const struct options *o);
