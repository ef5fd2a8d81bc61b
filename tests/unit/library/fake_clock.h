/*
 * The monotonic clock, and what a process sees of it that stood still (SIGSTOP, a paused virtual machine): a jump. For
 * tests in one thread.
 */
#pragma once

#include <stdint.h>

/* After so many more reads the clock is `ns` later than libc's, for good. No sleep ends sooner. Once in a program. */
void fake_clock_jump_after(uint64_t reads, uint64_t ns);

/* Reads so far. A nap (sys_futex_nap()) reads the clock twice, so this tells how many naps a wait took. */
uint64_t fake_clock_reads(void);
