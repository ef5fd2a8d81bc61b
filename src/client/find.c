#include "client/find.h"

#include <errno.h>
#include <string.h>

int client_own_run_dir(const char *hardware, const char *run_dir, char ret_dir[PATHS_MAX],
		       struct error *err)
{
	if (!run_dir)
		return paths_private_run_dir(hardware, ret_dir, err);
	if (strlen(run_dir) >= PATHS_MAX)
		return error_set(err, ENAMETOOLONG,
				 "'%.60s...': the path of a run directory must have at most %d bytes",
				 run_dir, PATHS_MAX - 1);
	strcpy(ret_dir, run_dir);
	return 0;
}

int client_find_system(const char *hardware, const char *run_dir, struct client **ret_client,
		       struct error *err)
{
	char dir[PATHS_MAX];
	int r;

	if (run_dir || paths_base_is_overridden())
		return error_set(err, ENOENT,
				 "the system's daemon is not used, because --run-dir or ALLOT_RUN_DIR "
				 "is set");
	r = paths_system_run_dir(hardware, dir, err);
	return r < 0 ? r : client_connect(dir, ret_client, err);
}

int client_find(const char *hardware, const char *run_dir, struct client **ret_client,
		struct error *err)
{
	char dir[PATHS_MAX];
	int r = client_find_system(hardware, run_dir, ret_client, err);

	if (r != -ENOENT)
		return r;
	r = client_own_run_dir(hardware, run_dir, dir, err);
	return r < 0 ? r : client_connect(dir, ret_client, err);
}
