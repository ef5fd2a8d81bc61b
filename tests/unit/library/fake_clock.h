/*
 * The monotonic clock, as a process sees it that was stopped (SIGSTOP, a paused virtual machine): it jumps. For tests with one
 * thread.
 */
#pragma once

#include <stdint.h>

/*
 * After this many more reads the clock is `ns` ahead of libc's, for good. No sleep ends sooner. Call at most once in a program.
 */
void fake_clock_jump_after(uint64_t reads, uint64_t ns);

/* Number of reads so far. A nap (sys_futex_nap()) reads the clock twice, so this counts the naps of a wait. */
uint64_t fake_clock_reads(void);
