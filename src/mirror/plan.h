/*
 * What a mirror consists of: from what was found to a list of actions. Pure: no file is looked at.
 *
 *     lib64/ lib/   the driver's libraries by word size, under their own names, and links by SONAME
 *     lib64/        liballot.so, and the shims (shim.h) in place of libcuda.so.1, libnvidia-ml.so.1
 *     bin/          the driver's programs
 *
 * Left out: libraries that are not the driver's (a table of names), and 32-bit copies of the two that
 * are governed, since liballot.so has 64 bits.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* A file that a look-up led to. */
struct mirror_file {
	char *path;    /* as it can be opened, symbolic links resolved; ours */
	char *soname;  /* of a library; NULL: it has none; ours */
	char *needed;  /* ' '-separated; ours */
	unsigned bits; /* 32 or 64; 0: a program */
	uint16_t machine;
};

struct mirror_files {
	struct mirror_file *file;
	size_t count;
};

enum mirror_kind {
	MIRROR_FILE, /* `from`: a path */
	MIRROR_LINK, /* `from`: what the link says */
	MIRROR_SHIM, /* `from`: the file that stands behind liballot.so */
};

struct mirror_action {
	enum mirror_kind kind;
	char *to; /* below the mirror: "lib64/libcuda.so.1"; no two alike */
	char *from;
	uint16_t machine; /* MIRROR_SHIM */
};

struct mirror_plan {
	struct mirror_action *action;
	size_t count;
	size_t left_out; /* files found that are not mirrored */
	char driver[64]; /* version: what follows "libcuda.so." in the file's name */
};

/*
 * Plans for the files found; `library` is the path of liballot.so. -ENOENT when there is no 64-bit
 * libcuda.so.1 among them, -ENOMEM.
 */
int mirror_plan_make(const struct mirror_files *files, const char *library,
		     struct mirror_plan *ret_plan, struct error *err);

void mirror_plan_free(struct mirror_plan *plan);
void mirror_files_free(struct mirror_files *files);

/* "580.159.04" of "libcuda.so.580.159.04"; "" when there is nothing after ".so.". */
const char *mirror_version(const char *file_name);
