/* Threads of the library itself. Before glibc 2.34, pthread_create is in libpthread, so it is looked up at run time. */
#pragma once

#include <stdbool.h>

/* Starts a detached thread that runs main(NULL) with all signals blocked. Returns false if that fails. */
bool thread_create(void *(*main)(void *));
