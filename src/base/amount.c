#include "base/amount.h"

#include <stdio.h>

struct amount amount(uint64_t bytes)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	double value = (double)bytes;
	unsigned unit = 0;
	struct amount a;
	while (value >= 1024 && unit < 4) {
		value /= 1024;
		unit++;
	}
	snprintf(a.text, sizeof(a.text), "%.4g %s", value, units[unit]);
	return a;
}
