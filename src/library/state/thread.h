/*
 * A thread of the library's own. pthread_create lives in libpthread before glibc 2.34, so it is looked up
 * when it is needed.
 */
#pragma once

#include <stdbool.h>

/* Starts main(NULL), which takes no signals and nobody joins. False: no thread can be had. */
bool thread_create(void *(*main)(void *));
