#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/install.h"
#include "client/client.h"
#include "cli/doctor/gather.h"

struct specs {
	struct doctor *d;
	const char *directory;
	struct facts *facts;
};

/* Returns the first host path in `edits` (a spec's containerEdits) that the machine lacks, or NULL. */
static const char *missing_of(const struct host *host, const json_t *edits)
{
	const char *const lists[][2] = { { "mounts", "hostPath" }, { "deviceNodes", "path" } };

	for (unsigned i = 0; i < 2; i++) {
		const json_t *list = json_object_get(edits, lists[i][0]);
		for (size_t k = 0; k < json_array_size(list); k++) {
			const json_t *one = json_array_get(list, k),
				     *other = json_object_get(one, "hostPath");
			const char *path = json_string_value(
				other ? other : json_object_get(one, lists[i][1]));
			if (path && path[0] == '/' && host_lacks(host, path))
				return path;
		}
	}
	return NULL;
}

static void check_spec(const struct host *host, const json_t *json, struct facts_spec *spec)
{
	const json_t *devices = json_object_get(json, "devices");
	const char *missing = missing_of(host, json_object_get(json, "containerEdits"));

	spec->devices = (unsigned)json_array_size(devices);
	if (!json_is_string(json_object_get(json, "cdiVersion")))
		snprintf(spec->fault, sizeof(spec->fault), "has no cdiVersion");
	else if (!json_is_string(json_object_get(json, "kind")))
		snprintf(spec->fault, sizeof(spec->fault), "has no kind");
	else if (!spec->devices)
		snprintf(spec->fault, sizeof(spec->fault), "has no devices");
	for (size_t i = 0; !missing && i < json_array_size(devices); i++)
		missing = missing_of(host,
				     json_object_get(json_array_get(devices, i), "containerEdits"));
	snprintf(spec->missing, sizeof(spec->missing), "%s", missing ? missing : "");
}

/* Counts the devices of a CDI spec in YAML without a parser: by "name:" after "devices:". */
static unsigned count_devices(const char *text)
{
	const char *list = strstr(text, "\ndevices:");
	unsigned count = 0;

	for (const char *at = list; at && (at = strstr(at + 1, "name:"));)
		count += at[-1] == ' ' || at[-1] == '\n';
	return count;
}

static bool find_spec(void *data, const char *name)
{
	struct specs *all = data;
	const char *dot = strrchr(name, '.');
	bool is_json = dot && !strcmp(dot, ".json");
	size_t size;
	json_error_t where;

	if (all->facts->specs == FACTS_MAX || !dot ||
	    (!is_json && strcmp(dot, ".yaml") != 0 && strcmp(dot, ".yml") != 0))
		return true;
	struct facts_spec *spec = &all->facts->spec[all->facts->specs];
	*spec = (struct facts_spec){ .is_ours = !strncmp(name, "allot", strlen("allot")) };
	if (!spec->is_ours && !strcasestr(name, "nvidia"))
		return true;
	snprintf(spec->path, sizeof(spec->path), "%s/%s", all->directory, name);
	all->facts->specs++;
	cleanup_free char *text = host_read_all(&all->d->host, spec->path, &size);
	if (!text) {
		snprintf(spec->fault, sizeof(spec->fault), "can't be read");
		return true;
	}
	cleanup_json json_t *json = is_json ? json_loadb(text, size, 0, &where) : NULL;
	if (is_json && !json)
		snprintf(spec->fault, sizeof(spec->fault), "line %d: %.200s", where.line,
			 where.text);
	else if (is_json)
		check_spec(&all->d->host, json, spec);
	else
		spec->devices = count_devices(text);
	return true;
}

void gather_specs(struct doctor *d, struct facts *facts)
{
	static const char *const directories[] = { "/etc/cdi", "/var/run/cdi" };

	for (unsigned i = 0; i < 2; i++) {
		struct specs all = { d, directories[i], facts };
		host_each(&d->host, directories[i], find_spec, &all);
	}
}

static enum fact is_same_file(const struct host *host, const char *path)
{
	struct host here = { .root = "" };
	char own[PATHS_MAX];
	size_t size, own_size;

	if (install_find(INSTALL_LIBRARY, own, NULL) < 0)
		return FACT_UNKNOWN;
	cleanup_free char *bytes = host_read_all(host, path, &size);
	cleanup_free char *own_bytes = host_read_all(&here, own, &own_size);
	if (!bytes || !own_bytes)
		return FACT_UNKNOWN;
	return size == own_size && !memcmp(bytes, own_bytes, size) ? FACT_YES : FACT_NO;
}

/* `allot mirror` writes the file `versions` into the directory that it makes. */
static void read_record(const struct host *host, struct facts_injection *in)
{
	char path[PATH_MAX];
	size_t size;

	snprintf(path, sizeof(path), "%s/versions", in->mirror);
	cleanup_free char *text = host_read_all(host, path, &size);
	cleanup_json json_t *json = text ? json_loadb(text, size, 0, NULL) : NULL;
	const char *driver = json_string_or(json, "driver", "");
	snprintf(in->mirror_driver, sizeof(in->mirror_driver), "%.*s", FACT_NAME_MAX - 1, driver);
}

void gather_injection(struct doctor *d, struct facts *facts)
{
	static const char *const toolkit[] = {
		"/usr/bin/nvidia-container-runtime", "/usr/bin/nvidia-ctk",
		"/usr/bin/nvidia-container-cli", "/usr/local/nvidia/toolkit/nvidia-container-runtime"
	};
	struct facts_injection *in = &facts->injection;
	char path[PATH_MAX], driver[FACT_TEXT_MAX];

	cleanup_json json_t *hello = gather_hello(d);
	in->is_simulated = doctor_is_simulated(d) ||
			   json_is_true(json_object_get(hello, "simulated"));
	for (size_t i = 0; i < sizeof(toolkit) / sizeof(*toolkit); i++)
		in->has_toolkit |= host_has(&d->host, toolkit[i]);
	gather_module_version(&d->host, in->module);
	gather_setting(&d->host, ALLOTD_CONF, "container_driver", "toolkit", driver);
	in->is_mirror = driver[0] == '/';
	if (!in->is_mirror)
		return;
	snprintf(in->mirror, sizeof(in->mirror), "%s", driver);
	snprintf(path, sizeof(path), "%s/lib64/liballot.so", in->mirror);
	in->has_mirror_library = host_has(&d->host, path);
	if (in->has_mirror_library)
		in->is_same_library = is_same_file(&d->host, path);
	read_record(&d->host, in);
}
