#include "daemon/containers/claims/state_dir.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/paths.h"
#include "daemon/state/node/node.h"

void state_dir_find(const struct node *node, char ret_dir[STATE_DIR_MAX])
{
	size_t length = strlen(PATHS_SYSTEM_BASE "/");
	bool is_systems = !node->is_private &&
			  !strncmp(node->run_dir, PATHS_SYSTEM_BASE "/", length);
	if (strcmp(node->config.state_dir, "auto") != 0)
		snprintf(ret_dir, STATE_DIR_MAX, "%s", node->config.state_dir);
	else if (is_systems)
		snprintf(ret_dir, STATE_DIR_MAX, STATE_DIR_SYSTEM "/%s", node->run_dir + length);
	else
		snprintf(ret_dir, STATE_DIR_MAX, "%s", node->run_dir);
}

/* Mode 0755, because containers mount directories below, which every user of a container must be able to read. */
static int make_each(char *path, struct error *err)
{
	for (char *slash = path; slash; slash = strchr(slash + 1, '/')) {
		if (slash == path)
			continue;
		*slash = '\0';
		bool is_made = mkdir(path, 0755) == 0;
		if (!is_made && errno != EEXIST)
			return error_set_errno(err, errno, "make %s", path);
		if (is_made && chmod(path, 0755) < 0)
			return error_set_errno(err, errno, "chmod %s", path);
		*slash = '/';
	}
	return 0;
}

int state_dir_make(const struct node *node, const char *dir, struct error *err)
{
	char path[PATH_MAX];
	struct stat st;
	if (*dir != '/')
		return error_set(err, EINVAL, "state_dir: '%s': must be a full path, or auto", dir);
	if (!strcmp(dir, node->run_dir))
		return 0; /* made and checked already */
	snprintf(path, sizeof(path), "%s/", dir);
	int r = make_each(path, err);
	if (r < 0)
		return error_add(err, r, "state_dir");
	if (lstat(dir, &st) < 0)
		return error_set_errno(err, errno, "state_dir: %s", dir);
	if (!S_ISDIR(st.st_mode))
		return error_set(err, ENOTDIR, "state_dir: %s: not a directory", dir);
	if (st.st_uid != geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH)))
		return error_set(
			err, EPERM,
			"state_dir: %s: must belong to uid %u and be writable only by that user: "
			"use chown, and chmod go-w",
			dir, (unsigned)geteuid());
	return 0;
}
