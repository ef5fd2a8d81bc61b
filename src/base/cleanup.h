/*
 * Scope-bound cleanup for C. A variable declared with one of these attributes releases its resource when it goes out of scope.
 * steal_pointer() and steal_fd() pass the resource on instead.
 */
#pragma once

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define cleanup(function) __attribute__((cleanup(function)))

/* Takes the value out of a variable and leaves NULL there: ownership moves to the caller. */
#define steal_pointer(pointer) \
	__extension__({ \
		__typeof__(pointer) p_ = (pointer); \
		__typeof__(*p_) value_ = *p_; \
		*p_ = NULL; \
		value_; \
	})

static inline int steal_fd(int *fd)
{
	int value = *fd;
	*fd = -1;
	return value;
}

static inline void close_fd(int *fd)
{
	int saved = errno;
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	errno = saved;
}

static inline void cleanup_free_pointer(void *pointer)
{
	free(*(void **)pointer);
}

static inline void cleanup_close_file(FILE **file)
{
	if (*file)
		fclose(*file);
}

static inline void cleanup_close_dir(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

#define cleanup_free cleanup(cleanup_free_pointer)
#define cleanup_fd cleanup(close_fd)
#define cleanup_file cleanup(cleanup_close_file)
#define cleanup_dir cleanup(cleanup_close_dir)
