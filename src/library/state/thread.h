#pragma once

#include <stdbool.h>

/* Starts a detached thread with all signals blocked. Finds pthread_create at run time: before glibc 2.34, libpthread has it. */
bool thread_create(void *(*main)(void *));
