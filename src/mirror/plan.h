/*
 * Turns the files that were found (find_files.h) into a list of actions that make a mirror. Pure: reads no file. A mirror
 * contains:
 *
 *    lib64/ lib/   the driver's libraries by word size, under their own names, and links by SONAME
 *    lib64/        liballot.so, and the shims (shim.h) in place of libcuda.so.1, libnvidia-ml.so.1
 *    bin/          the driver's programs
 *
 * The plan skips libraries that are not the driver's (by a table of names in plan.c), and 32-bit copies of libcuda and
 * libnvidia-ml, because liballot.so is 64-bit.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct mirror_file {
	char *path;    /* can be opened, symbolic links resolved; owned */
	char *soname;  /* SONAME of a library; NULL if there is none; owned */
	char *needed;  /* names of the libraries that the file needs, separated by ' '; owned */
	unsigned bits; /* 32 or 64; 0 for a program */
	uint16_t machine;
};

struct mirror_files {
	struct mirror_file *file;
	size_t count;
};

enum mirror_kind {
	MIRROR_FILE, /* `from` is a path */
	MIRROR_LINK, /* `from` is the link's target */
	MIRROR_SHIM, /* a shim (shim.h) that loads liballot.so and then `from` */
};

struct mirror_action {
	enum mirror_kind kind;
	char *to; /* path in the mirror, such as "lib64/libcuda.so.1"; unique */
	char *from;
	uint16_t machine; /* only for MIRROR_SHIM */
};

struct mirror_plan {
	struct mirror_action *action;
	size_t count;
	size_t left_out; /* files that were found but are not mirrored */
	char driver[64]; /* version: the part after "libcuda.so." in the file's name */
};

/* `library` is the path of liballot.so. Returns -ENOENT if no file is a 64-bit libcuda.so.1, or -ENOMEM. */
int mirror_plan_make(const struct mirror_files *files, const char *library,
		     struct mirror_plan *ret_plan, struct error *err);

void mirror_plan_free(struct mirror_plan *plan);
void mirror_files_free(struct mirror_files *files);

/* "580.159.04" for "libcuda.so.580.159.04"; "" if nothing follows ".so.". */
const char *mirror_version(const char *file_name);
