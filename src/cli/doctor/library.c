#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "cli/doctor/checks.h"
#include "base/install.h"
#include "mirror/elf_file.h"

#define PRELOAD "/etc/ld.so.preload"

/* Other projects' libraries that intercept CUDA, by the beginnings of their names. */
static const struct {
	const char *beginning, *whose;
} rivals[] = {
	{ "libvgpu.so", "HAMi's" },
	{ "libcuda-control.so", "gpu-manager's" },
	{ "libgemhook.so", "KubeShare's" },
	{ "libnvshare.so", "nvshare's" },
};

static void check_own(struct doctor *d)
{
	char path[PATHS_MAX];
	struct error err;
	struct stat st;
	struct elf_file file;
	size_t size;
	struct host here = { .root = "" };

	if (install_find(INSTALL_LIBRARY, path, &err) < 0) {
		finding_set_remedy(findings_add(&d->findings, FINDING_PROBLEM, "library", "%s",
						err.text),
				   "run scripts/build, or meson install");
		return;
	}
	cleanup_free char *bytes = host_read_all(&here, path, &size);
	if (!bytes || elf_file_read(bytes, size, &file) < 0)
		finding_set_remedy(findings_add(&d->findings, FINDING_PROBLEM, "library",
						"%s is not a shared library", path),
				   "install allot again");
	else if (stat(path, &st) == 0 && !(st.st_mode & S_IROTH))
		finding_set_remedy(findings_add(&d->findings, FINDING_PROBLEM, "library",
						"%s can't be read by other users", path),
				   "chmod a+r %s", path);
	else
		findings_add(&d->findings, FINDING_OK, "library", "%s", path);
}

static const char *rival_of(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	for (size_t i = 0; i < sizeof(rivals) / sizeof(*rivals); i++)
		if (!strncmp(name, rivals[i].beginning, strlen(rivals[i].beginning)))
			return rivals[i].whose;
	return NULL;
}

static void check_preloaded(struct doctor *d, const char *path, const char *where)
{
	const char *whose = rival_of(path);

	if (whose)
		finding_set_remedy(
			findings_add(&d->findings, FINDING_PROBLEM, "preload",
				     "%s loads %s, which is %s: two such libraries block each other",
				     where, path, whose),
			"remove one of them");
	else if (path[0] == '/' && host_lacks(&d->host, path))
		finding_set_remedy(
			findings_add(
				&d->findings, FINDING_WARNING, "preload",
				"%s loads %s, which does not exist: every program prints an error",
				where, path),
			"remove that line, or restore the file");
	else
		findings_add(&d->findings, FINDING_NOTE, "preload", "%s has %s", where, path);
}

static void check_preload(struct doctor *d)
{
	size_t size, before = d->findings.count;
	cleanup_free char *text = host_read_all(&d->host, PRELOAD, &size);
	const char *variable = host_is_local(&d->host) ? getenv("LD_PRELOAD") : NULL;
	cleanup_free char *own = variable ? strdup(variable) : NULL;

	for (char *rest = text, *path; rest && (path = strtok_r(rest, " \t\n:", &rest));)
		check_preloaded(d, path, PRELOAD);
	for (char *rest = own, *path; rest && (path = strtok_r(rest, " :", &rest));)
		check_preloaded(d, path, "LD_PRELOAD");
	if (d->findings.count == before)
		findings_add(
			&d->findings, FINDING_OK, "preload",
			"nothing is preloaded; allot run preloads its library for its own command");
}

void doctor_check_library(struct doctor *d)
{
	check_own(d);
	check_preload(d);
}
