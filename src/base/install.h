/*
 * Where this copy of allot keeps its other parts: looked for beside the program itself (allot, or
 * allotd), as built by scripts/build, as built by meson, and as installed. No environment variable leads
 * elsewhere. Thread safe.
 */
#pragma once

#include "base/error.h"
#include "base/paths.h"

enum install_part {
	INSTALL_DAEMON,     /* allotd */
	INSTALL_LIBRARY,    /* liballot.so */
	INSTALL_SIM_SERVER, /* allot-sim */
	INSTALL_SIM_CUDA,   /* the simulated libcuda.so.1 */
	INSTALL_SIM_NVML,   /* the simulated libnvidia-ml.so.1, in the same directory */
	INSTALL_SIM_MPS,    /* the simulated nvidia-cuda-mps-control, there as well */
	INSTALL_BENCH,      /* bench/run, with what it imports beside it */
};

/* The absolute path of a part; -ENOENT when this installation lacks it. */
int install_find(enum install_part part, char ret_path[PATHS_MAX], struct error *err);

/* The absolute path of the directory that this program is in. */
int install_own_directory(char ret_dir[PATHS_MAX], struct error *err);
