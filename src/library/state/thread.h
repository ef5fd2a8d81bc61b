/*
 * Threads of the library itself. Before glibc 2.34, pthread_create is in libpthread, so the function is looked up
 * at run time.
 */
#pragma once

#include <stdbool.h>

/*
 * Starts a detached thread that runs main(NULL) with all signals blocked. Returns false if no thread can be
 * created.
 */
bool thread_create(void *(*main)(void *));
