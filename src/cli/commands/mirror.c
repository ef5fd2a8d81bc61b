#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/command.h"
#include "base/install.h"
#include "mirror/volume_config.h"
#include "mirror/execute.h"
#include "mirror/find_files.h"

#define CONFIG_SIZE_MAX (1 << 20)
#define USUAL_SEARCH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

struct mirror_options {
	const char *config;
	const char *root;
};

static const struct option_row rows[] = {
	OPTION("--config", OPTION_VALUE_REQUIRED, "FILE", option_text, struct mirror_options, config,
	       .help = "which libraries and programs, in the form of\n"
		       "gpu-manager's volume.conf (default: those that CUDA\n"
		       "programs need)"),
	OPTION("--root", OPTION_VALUE_REQUIRED, "DIR", option_text, struct mirror_options, root,
	       .help = "look for the driver below this directory, for example\n"
		       "that of a driver container (default: /)"),
	OPTION_END,
};

static int read_config(const char *path, struct mirror_config *ret, struct error *err)
{
	cleanup_free char *text = calloc(1, CONFIG_SIZE_MAX + 1);

	if (!path)
		return mirror_config_default(ret, err);
	cleanup_file FILE *file = fopen(path, "re");
	if (!file)
		return error_set_errno(err, errno, "--config: %s", path);
	if (!text)
		return error_set(err, ENOMEM, "out of memory");
	if (fread(text, 1, CONFIG_SIZE_MAX, file) == CONFIG_SIZE_MAX)
		return error_set(err, EFBIG, "--config: %s: larger than 1 MiB", path);
	int r = mirror_config_parse(text, ret, err);
	return r < 0 ? error_add(err, r, "--config: %s", path) : 0;
}

static int find_all(const char *root, const struct mirror_config *config,
		    struct mirror_files *files, struct error *err)
{
	const char *search = getenv("PATH");
	int r = mirror_find_libraries(root, config->libraries, files, err);

	/* This program's PATH does not apply below another root, so the usual directories are searched there. */
	if (*root || !search)
		search = USUAL_SEARCH;
	return r < 0 ? r : mirror_find_binaries(root, search, config->binaries, files, err);
}

static int make_mirror(const struct command *self, void *data, char *place, struct error *err)
{
	const struct mirror_options *options = data;
	const char *root = options->root && strcmp(options->root, "/") != 0 ? options->root : "";
	cleanup(mirror_config_free) struct mirror_config config = { 0 };
	cleanup(mirror_files_free) struct mirror_files files = { 0 };
	cleanup(mirror_plan_free) struct mirror_plan plan = { 0 };
	char library[PATHS_MAX];
	bool is_new;
	int r = install_find(INSTALL_LIBRARY, library, err);

	/* Remove trailing slashes: with "DIR/" the temporary directory would be made inside the old DIR. */
	for (size_t n = strlen(place); n > 1 && place[n - 1] == '/'; n--)
		place[n - 1] = '\0';
	if (r < 0 || (r = read_config(options->config, &config, err)) < 0)
		return r;
	r = find_all(root, &config, &files, err);
	if (r == 0)
		r = mirror_plan_make(&files, library, &plan, err);
	if (r < 0)
		return error_add(err, r, "the driver below %s", *root ? root : "/");
	r = mirror_execute(&plan, place, &is_new, err);
	if (r < 0)
		return r;
	printf("%s: driver %s, %zu files%s\n", place, *plan.driver ? plan.driver : "(no version)",
	       plan.count, is_new ? "" : ", unchanged");
	return 0;
}

const struct command command_mirror = {
	.name = "mirror",
	.usage = "[OPTION...] DIR",
	.summary = "copy the driver's libraries to a directory, with allot's in front",
	.about = "Fills DIR with hard links to (or copies of) the NVIDIA driver's libraries and\n"
		 "programs, in lib64, lib and bin. Its libcuda.so.1 and libnvidia-ml.so.1 load\n"
		 "allot's library first, so a program that finds DIR/lib64 first is governed\n"
		 "without LD_PRELOAD.\n\n"
		 "An older mirror in DIR is replaced in one step; any other directory is left\n"
		 "alone. DIR/versions lists the files. To undo it, remove DIR.",
	.rows = rows,
	.operand = OPERAND_DIRECTORY,
	.options_size = sizeof(struct mirror_options),
	.wanted = "write one directory to make",
	.act = make_mirror,
};
