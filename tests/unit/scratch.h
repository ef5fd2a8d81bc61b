/* A directory of the test program's own: cmocka setup and teardown, and its path in between. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char scratch[64];

static int make_scratch(void **state)
{
	strcpy(scratch, "/tmp/allot-test-XXXXXX");
	return mkdtemp(scratch) ? 0 : -1;
}

static int remove_scratch(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", scratch);
	return system(command);
}
