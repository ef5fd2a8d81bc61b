#include "base/install.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PLACES_MAX 5

struct part {
	const char *name;
	/* relative to the program's directory; tried in this order */
	const char *places[PLACES_MAX];
};

/*
 * Each row has the part's place in the output of scripts/build, in meson's build tree, and in an installation (programs in
 * <prefix>/bin). ALLOT_LIBDIR ("lib/x86_64-linux-gnu") and ALLOT_DATADIR are directories below the prefix.
 */
static const struct part parts[] = {
	[INSTALL_DAEMON] = { "allotd", { "allotd", "../daemon/allotd", "../libexec/allot/allotd" } },
	[INSTALL_LIBRARY] = { "liballot.so",
			      { "liballot.so", "../library/liballot.so",
				"../" ALLOT_LIBDIR "/allot/liballot.so",
				"../" ALLOT_LIBDIR "/liballot.so" } },
	[INSTALL_SIM_SERVER] = { "allot-sim",
				 { "allot-sim", "../sim/allot-sim", "../libexec/allot/allot-sim" } },
	[INSTALL_SIM_CUDA] = { "the simulated libcuda.so.1",
			       { "sim/libcuda.so.1", "../sim/libcuda.so.1",
				 "../" ALLOT_LIBDIR "/allot/sim/libcuda.so.1" } },
	[INSTALL_SIM_NVML] = { "the simulated libnvidia-ml.so.1",
			       { "sim/libnvidia-ml.so.1", "../sim/libnvidia-ml.so.1",
				 "../" ALLOT_LIBDIR "/allot/sim/libnvidia-ml.so.1" } },
	[INSTALL_SIM_MPS] = { "the simulated nvidia-cuda-mps-control",
			      { "sim/nvidia-cuda-mps-control", "../sim/nvidia-cuda-mps-control",
				"../" ALLOT_LIBDIR "/allot/sim/nvidia-cuda-mps-control" } },
	[INSTALL_BENCH] = { "the benches' program, bench/run,",
			    { "../bench/run", "bench/run", "../" ALLOT_DATADIR "/allot/bench/run" } },
};

int install_own_directory(char ret_dir[PATHS_MAX], struct error *err)
{
	char path[PATHS_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (n < 0)
		return error_set_errno(err, errno,
				       "can't find this program's own directory: /proc/self/exe");
	path[n] = '\0';
	char *slash = strrchr(path, '/');
	if (!slash)
		return error_set(err, ENOENT,
				 "/proc/self/exe leads to '%s', a path without a directory: start "
				 "the program by its installed path",
				 path);
	*slash = '\0';
	strcpy(ret_dir, path);
	return 0;
}

int install_find(enum install_part part, char ret_path[PATHS_MAX], struct error *err)
{
	const struct part *wanted = &parts[part];
	char dir[PATHS_MAX], path[PATHS_MAX];
	int r = install_own_directory(dir, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < PLACES_MAX && wanted->places[i]; i++) {
		r = paths_join(dir, wanted->places[i], path, sizeof(path), err);
		if (r < 0)
			return r;
		if (access(path, R_OK) == 0 && realpath(path, ret_path))
			return 0;
	}
	return error_set(err, ENOENT,
			 "%s is not installed beside this program (%s); build with "
			 "scripts/build, or install allot whole",
			 wanted->name, dir);
}
