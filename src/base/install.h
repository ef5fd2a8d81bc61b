/*
 * Finds the other parts of this copy of allot by their place relative to the running program (allot or allotd). Knows the
 * directory layouts of scripts/build, of meson's build tree and of an installation. Reads no environment variable. Thread safe.
 */
#pragma once

#include "base/error.h"
#include "base/paths.h"

enum install_part {
	INSTALL_DAEMON,
	INSTALL_LIBRARY,
	INSTALL_SIM_SERVER,
	INSTALL_SIM_CUDA, /* the simulated libcuda.so.1 */
	/* the simulated libnvidia-ml.so.1, in the directory of INSTALL_SIM_CUDA */
	INSTALL_SIM_NVML,
	/* the simulated nvidia-cuda-mps-control, in the directory of INSTALL_SIM_CUDA */
	INSTALL_SIM_MPS,
	INSTALL_BENCH, /* bench/run, with the files that it imports beside it */
};

/* Finds a part's absolute path. -ENOENT if this installation lacks it. */
int install_find(enum install_part part, char ret_path[PATHS_MAX], struct error *err);

int install_own_directory(char ret_dir[PATHS_MAX], struct error *err);
