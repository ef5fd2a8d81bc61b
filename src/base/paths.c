#include "base/paths.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fnv.h"
#include "base/text.h"

#define BASE_VARIABLE "ALLOT_RUN_DIR"

static bool is_word(const char *spec)
{
	for (const char *c = spec; *c; c++)
		if (!(*c >= 'a' && *c <= 'z') && !(*c >= 'A' && *c <= 'Z') &&
		    !(*c >= '0' && *c <= '9') && *c != '-' && *c != '_')
			return false;
	return *spec != '\0';
}

/* Makes "sim-NAME-HASH". NAME is the file's name up to its first '.', at most 16 characters. */
static void name_file(const char *real_path, char ret_name[PATHS_HARDWARE_MAX])
{
	const char *slash = strrchr(real_path, '/');
	char stem[17];
	size_t n = 0;

	for (const char *c = slash ? slash + 1 : real_path; *c && *c != '.' && n < 16; c++) {
		char one[2] = { *c, '\0' };

		stem[n++] = (char)(is_word(one) ? *c : '_');
	}
	stem[n] = '\0';
	snprintf(ret_name, PATHS_HARDWARE_MAX, "sim-%s-%08x", stem,
		 fnv32(real_path, strlen(real_path)));
}

int paths_hardware(const char *spec, char ret_name[PATHS_HARDWARE_MAX], struct error *err)
{
	if (!spec) {
		strcpy(ret_name, "gpu");
		return 0;
	}
	if (!*spec)
		return error_set(err, EINVAL,
				 "'': a simulated GPU must be named; write for example h200, "
				 "h200x2 or the name of a description file");
	if (is_word(spec)) {
		if (strlen(spec) > 32)
			return error_set(err, ENAMETOOLONG,
					 "'%.40s...': no such simulated GPU; write for example h200, "
					 "h200x2 or the name of a description file",
					 spec);
		snprintf(ret_name, PATHS_HARDWARE_MAX, "sim-%s", spec);
		return 0;
	}
	char *real_path = realpath(spec, NULL);
	if (!real_path)
		return error_set(err, errno,
				 "'%s': %s; write for example h200, h200x2 or the name "
				 "of a description file",
				 spec, strerror(errno));
	name_file(real_path, ret_name);
	free(real_path);
	return 0;
}

int paths_join(const char *dir, const char *leaf, char *ret_path, size_t size, struct error *err)
{
	if (strlen(dir) + 1 + strlen(leaf) + 1 > size)
		return error_set(err, ENAMETOOLONG, "'%s/%.40s': this path is longer than %zu bytes",
				 dir, leaf, size - 1);
	snprintf(ret_path, size, "%s/%s", dir, leaf);
	return 0;
}

int paths_system_run_dir(const char *hardware, char ret_dir[PATHS_MAX], struct error *err)
{
	return paths_join(PATHS_SYSTEM_BASE, hardware, ret_dir, PATHS_MAX, err);
}

bool paths_base_is_overridden(void)
{
	const char *base = getenv(BASE_VARIABLE);

	return base && *base;
}

int paths_private_run_dir(const char *hardware, char ret_dir[PATHS_MAX], struct error *err)
{
	const char *override = getenv(BASE_VARIABLE);
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	char base[PATHS_MAX];
	int r;

	if (override && *override) {
		if (*override != '/')
			return error_set(err, EINVAL,
					 BASE_VARIABLE " is '%s': must be an absolute path",
					 override);
		return paths_join(override, hardware, ret_dir, PATHS_MAX, err);
	}
	if (runtime && *runtime == '/') {
		r = paths_join(runtime, "allot", base, sizeof(base), err);
		if (r < 0)
			return r;
	} else {
		snprintf(base, sizeof(base), "/tmp/allot-%u", (unsigned int)geteuid());
	}
	return paths_join(base, hardware, ret_dir, PATHS_MAX, err);
}

int paths_check_private(const char *dir, struct error *err)
{
	struct stat st;

	if (lstat(dir, &st) < 0)
		return error_set(err, errno, "%s: %s", dir, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return error_set(err, ENOTDIR,
				 "%s: not a directory; remove it, or set " BASE_VARIABLE
				 " to a directory of your own",
				 dir);
	if (st.st_uid != geteuid())
		return error_set(err, EPERM,
				 "%s: belongs to uid %u; set " BASE_VARIABLE
				 " to a directory of your own",
				 dir, (unsigned int)st.st_uid);
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return error_set(err, EPERM,
				 "%s: others may write to it (mode %03o); run chmod 700 on "
				 "it",
				 dir, (unsigned int)(st.st_mode & 0777));
	return 0;
}

static int make_and_check(const char *dir, struct error *err)
{
	if (mkdir(dir, 0700) < 0 && errno != EEXIST)
		return error_set(err, errno, "%s: can't make this directory: %s", dir,
				 strerror(errno));
	return paths_check_private(dir, err);
}

int paths_check_text(const char *dir, struct error *err)
{
	char shown[PATHS_MAX];

	if (!*text_clean_prefix_end(dir, SIZE_MAX))
		return 0;
	snprintf(shown, sizeof(shown), "%s", dir);
	text_clean(shown);
	return error_set(err, EILSEQ,
			 "run directory '%s': its path is not UTF-8, or has control characters "
			 "(each shown as \"?\"): set ALLOT_RUN_DIR to another directory",
			 shown);
}

int paths_make_private(const char *run_dir, struct error *err)
{
	const char *slash = strrchr(run_dir, '/');
	char base[PATHS_MAX];

	if (!slash || slash == run_dir || strlen(run_dir) >= sizeof(base))
		return error_set(
			err, EINVAL,
			"'%s': must be a full path of at least two parts, such as /run/allot",
			run_dir);
	int r = paths_check_text(run_dir, err);
	if (r < 0)
		return r;
	memcpy(base, run_dir, (size_t)(slash - run_dir));
	base[slash - run_dir] = '\0';
	r = make_and_check(base, err);
	if (r < 0)
		return r;
	return make_and_check(run_dir, err);
}

int paths_make_system(const char *dir, struct error *err)
{
	char path[PATH_MAX];
	struct stat st;
	snprintf(path, sizeof(path), "%s", dir);
	for (char *slash = path; slash; slash = strchr(slash + 1, '/')) {
		if (slash == path)
			continue;
		*slash = '\0';
		if (mkdir(path, 0755) == 0 && chmod(path, 0755) < 0)
			return error_set_errno(err, errno, "can't set the mode of %s", path);
		*slash = '/';
	}
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		return error_set_errno(err, errno, "can't make %s", path);
	if (lstat(path, &st) < 0 || !S_ISDIR(st.st_mode))
		return error_set(err, ENOTDIR,
				 "%s: not a directory: remove it, and allot makes one", path);
	if (st.st_uid != 0 || (st.st_mode & (S_IWGRP | S_IWOTH)))
		return error_set(err, EPERM,
				 "%s: must belong to root and be writable by nobody else", path);
	return chmod(path, 0755) < 0 ? error_set_errno(err, errno, "can't set the mode of %s", path)
				     : 0;
}
