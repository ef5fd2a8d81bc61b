/* What every test of src/cli includes: cmocka wants these before it, in this order. */
#ifndef ALLOT_TESTS_UNIT_CLI_TEST_H
#define ALLOT_TESTS_UNIT_CLI_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#endif
