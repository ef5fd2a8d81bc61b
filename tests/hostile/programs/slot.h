/* Finds the process's own slot in its tenant's report, to falsify it. */
#pragma once

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "abi/shm/region.h"

static struct region_report *find_report(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	unsigned long start = 0;
	while (maps && fgets(line, sizeof(line), maps))
		if (strstr(line, "rw-s") && strstr(line, "allot-report") && !start)
			sscanf(line, "%lx", &start);
	if (maps)
		fclose(maps);
	return (struct region_report *)start;
}

static struct region_slot_device *find_slot(struct region_report *report)
{
	for (unsigned i = 0; report && i < REGION_MAX_SLOTS; i++)
		if (report->slot[i].own_pid == getpid())
			return &report->slot[i].device[0];
	return NULL;
}
