/* For cmocka tests that act as several users. */
#pragma once

#include <unistd.h>

static void skip_unless_root(void)
{
	if (geteuid() == 0)
		return;
	print_message("only root can run this test\n");
	skip();
}
