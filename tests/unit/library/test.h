/* Included by every test of src/library: cmocka needs these headers before its own, in this order. */
#pragma once

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

/* A test that can't run here: the program ends with this, and Meson counts it as skipped. */
#define TEST_SKIPPED 77

/* xorshift64: a test's randomness, the same in every run with the same seed. Never 0. */
static inline uint64_t test_random(uint64_t *state)
{
	uint64_t x = *state;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return *state = x;
}
