#pragma once

#include <stdbool.h>

/* Detached, with all signals blocked. Looks up pthread_create at run time: it is in libpthread before glibc 2.34. */
bool thread_create(void *(*main)(void *));
