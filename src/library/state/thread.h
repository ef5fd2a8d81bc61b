/*
 * A thread of the library's own. pthread_create lives in libpthread before glibc 2.34, so it is looked up
 * when it is needed.
 */
#ifndef ALLOT_LIBRARY_STATE_THREAD_H
#define ALLOT_LIBRARY_STATE_THREAD_H

#include <stdbool.h>

/* Starts main(NULL), which takes no signals and nobody joins. False: no thread can be had. */
bool thread_create(void *(*main)(void *));

#endif
