/* Where a GPU hangs, by sysfs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "daemon/kubelet/dra/devices.h"
#include "../../../scratch.h"

static void add(const char *address, const char *target)
{
	char path[128];
	snprintf(path, sizeof(path), "%s/%s", scratch, address);
	assert_int_equal(symlink(target, path), 0);
}

static void test_pcie_root(void **state)
{
	char root[64];
	add("0000:18:00.0", "../../../devices/pci0000:17/0000:17:01.0/0000:18:00.0");
	add("0000:19:00.0", "../../../devices/virtual/0000:19:00.0");
	assert_int_equal(dra_pcie_root(scratch, "0000:18:00.0", root), 0);
	assert_string_equal(root, "pci0000:17");
	assert_int_equal(dra_pcie_root(scratch, "0000:19:00.0", root), -ENOENT);
	assert_int_equal(dra_pcie_root(scratch, "0000:20:00.0", root), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_pcie_root) };
	return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
