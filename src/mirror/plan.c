#include "mirror/plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/* The libraries that liballot.so hooks, and the names of their shims (shim.h). Programs open the libraries by these names. */
static const struct governed {
	const char *soname;
	const char *shims[3];
} governed[] = {
	{ "libcuda.so.1", { "libcuda.so.1", "libcuda.so" } },
	{ "libnvidia-ml.so.1", { "libnvidia-ml.so.1", "libnvidia-ml.so" } },
};

/*
 * Libraries that a configuration may list but that do not belong to the driver. In a mirror, they would hide the container's
 * own copies. Every vendor has libraries with the GL names; those of NVIDIA depend on an NVIDIA library or on libGLdispatch.so.
 */
static const struct blocked {
	const char *name; /* library's name up to ".so" */
	/* allowed if it needs a library with this prefix; NULL: never allowed */
	const char *unless;
} blocked[] = {
	{ "ld-linux", NULL },
	{ "ld-linux-x86-64", NULL },
	{ "ld-linux-aarch64", NULL },
	{ "libc", NULL },
	{ "libdl", NULL },
	{ "libgcc_s", NULL },
	{ "libm", NULL },
	{ "libpthread", NULL },
	{ "librt", NULL },
	{ "libstdc++", NULL },
	{ "libEGL", "libnvidia-" },
	{ "libEGL", "libGLdispatch.so" },
	{ "libGL", "libnvidia-" },
	{ "libGL", "libGLdispatch.so" },
	{ "libGLESv1_CM", "libnvidia-" },
	{ "libGLESv1_CM", "libGLdispatch.so" },
	{ "libGLESv2", "libnvidia-" },
	{ "libGLESv2", "libGLdispatch.so" },
	{ "libGLX", "libnvidia-" },
	{ "libGLX", "libGLdispatch.so" },
};

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

const char *mirror_version(const char *file_name)
{
	const char *so = strstr(file_name, ".so.");

	return so ? so + 4 : "";
}

static bool is_named(const char *file_name, const char *name)
{
	size_t length = strlen(name);

	return strncmp(file_name, name, length) == 0 && strncmp(file_name + length, ".so", 3) == 0;
}

static bool needs(const char *needed, const char *prefix)
{
	for (const char *c = needed; c && *c; c += strcspn(c, " ")) {
		c += strspn(c, " ");
		if (strncmp(c, prefix, strlen(prefix)) == 0)
			return true;
	}
	return false;
}

static bool is_blocked(const struct mirror_file *file)
{
	const char *name = base_name(file->path);
	bool has_row = false;

	for (size_t i = 0; i < COUNT(blocked); i++) {
		if (!is_named(name, blocked[i].name))
			continue;
		if (blocked[i].unless && needs(file->needed, blocked[i].unless))
			return false;
		has_row = true;
	}
	return has_row;
}

static const struct governed *find_governed(const struct mirror_file *file)
{
	for (size_t i = 0; file->soname && i < COUNT(governed); i++)
		if (strcmp(file->soname, governed[i].soname) == 0)
			return &governed[i];
	return NULL;
}

static bool is_shim(const struct governed *g, const char *name)
{
	for (size_t i = 0; g->shims[i]; i++)
		if (strcmp(g->shims[i], name) == 0)
			return true;
	return false;
}

static bool is_planned(const struct mirror_plan *plan, const char *to)
{
	for (size_t i = 0; i < plan->count; i++)
		if (strcmp(plan->action[i].to, to) == 0)
			return true;
	return false;
}

/* An earlier action for the same path in the mirror wins, because the loader's cache lists the preferred file first. */
static int add(struct mirror_plan *plan, enum mirror_kind kind, const char *dir, const char *name,
	       const char *from, uint16_t machine, struct error *err)
{
	cleanup_free char *to = NULL, *copy = strdup(from);

	if (asprintf(&to, "%s/%s", dir, name) < 0)
		to = NULL;
	if (!to || !copy)
		return error_set(err, ENOMEM, "out of memory");
	if (is_planned(plan, to))
		return 0;
	struct mirror_action *grown = realloc(plan->action,
					      (plan->count + 1) * sizeof(*plan->action));
	if (!grown)
		return error_set(err, ENOMEM, "out of memory");
	plan->action = grown;
	plan->action[plan->count++] = (struct mirror_action){ .kind = kind,
							      .to = steal_pointer(&to),
							      .from = steal_pointer(&copy),
							      .machine = machine };
	return 0;
}

/* Plans a hooked library: its shims, and the driver's file. A file with a shim's name gets another name in the mirror. */
static int plan_governed(struct mirror_plan *plan, const struct mirror_file *file,
			 const struct governed *g, struct error *err)
{
	const char *name = base_name(file->path);
	char own[300];

	if (file->bits != 64) {
		plan->left_out++;
		return 0;
	}
	snprintf(own, sizeof(own), "%.200s%s", name, is_shim(g, name) ? ".driver" : "");
	int r = add(plan, MIRROR_FILE, "lib64", own, file->path, 0, err);
	for (size_t i = 0; r == 0 && g->shims[i]; i++)
		r = add(plan, MIRROR_SHIM, "lib64", g->shims[i], own, file->machine, err);
	if (g == &governed[0] && !*plan->driver)
		snprintf(plan->driver, sizeof(plan->driver), "%.60s", mirror_version(name));
	return r;
}

static int plan_library(struct mirror_plan *plan, const struct mirror_file *file, struct error *err)
{
	const struct governed *g = find_governed(file);
	const char *dir = file->bits == 64 ? "lib64" : "lib", *name = base_name(file->path);

	if (g)
		return plan_governed(plan, file, g, err);
	if (is_blocked(file)) {
		plan->left_out++;
		return 0;
	}
	int r = add(plan, MIRROR_FILE, dir, name, file->path, 0, err);
	if (r == 0 && file->soname && strcmp(file->soname, name) != 0 && !strchr(file->soname, '/'))
		r = add(plan, MIRROR_LINK, dir, file->soname, name, 0, err);
	return r;
}

int mirror_plan_make(const struct mirror_files *files, const char *library,
		     struct mirror_plan *ret_plan, struct error *err)
{
	struct mirror_plan plan = { 0 };
	int r = 0;

	for (size_t i = 0; r == 0 && i < files->count; i++) {
		const struct mirror_file *file = &files->file[i];
		r = file->bits ? plan_library(&plan, file, err)
			       : add(&plan, MIRROR_FILE, "bin", base_name(file->path), file->path,
				     0, err);
	}
	if (r == 0 && !is_planned(&plan, "lib64/libcuda.so.1"))
		r = error_set(err, ENOENT,
			      "no 64-bit libcuda.so.1 was found; install NVIDIA's driver or, if it is "
			      "installed below another root directory, name that directory");
	if (r == 0)
		r = add(&plan, MIRROR_FILE, "lib64", "liballot.so", library, 0, err);
	if (r < 0)
		mirror_plan_free(&plan);
	else
		*ret_plan = plan;
	return r;
}

void mirror_plan_free(struct mirror_plan *plan)
{
	for (size_t i = 0; i < plan->count; i++) {
		free(plan->action[i].to);
		free(plan->action[i].from);
	}
	free(plan->action);
	*plan = (struct mirror_plan){ 0 };
}

void mirror_files_free(struct mirror_files *files)
{
	for (size_t i = 0; i < files->count; i++) {
		free(files->file[i].path);
		free(files->file[i].soname);
		free(files->file[i].needed);
	}
	free(files->file);
	*files = (struct mirror_files){ 0 };
}
