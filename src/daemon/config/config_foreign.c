#include "daemon/config/config_foreign.h"

#include <errno.h>
#include <string.h>

#define TEXT_MAX CONFIG_PATH_MAX

/* A row's value in words of the setting that it stands for. */
typedef int (*translate)(const struct config *config, const char *value, char ret[TEXT_MAX],
			 struct error *err);

static int put(char ret[TEXT_MAX], struct error *err, const char *before, const char *value,
	       const char *after)
{
	int n = snprintf(ret, TEXT_MAX, "%s%s%s", before, value, after);
	return n < TEXT_MAX ? 0 : error_set(err, EINVAL, "longer than %d bytes", TEXT_MAX - 1);
}

static int parse_bool(const char *value, bool *ret, struct error *err)
{
	static const char *const words[][2] = { { "false", "true" }, { "off", "on" }, { "0", "1" } };
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		for (int is = 0; is < 2; is++)
			if (!strcmp(value, words[i][is])) {
				*ret = is;
				return 0;
			}
	return error_set(err, EINVAL, "'%.60s': must be true or false", value);
}

/* A number alone is in seconds. */
static int seconds(const struct config *config, const char *value, char ret[TEXT_MAX],
		   struct error *err)
{
	bool is_number = *value && !value[strspn(value, "0123456789")];
	return put(ret, err, "", value, is_number ? "s" : "");
}

static const char *socket_path(const char *value)
{
	static const char scheme[] = "unix://";
	return strncmp(value, scheme, sizeof(scheme) - 1) ? value : value + sizeof(scheme) - 1;
}

static int docker_socket(const struct config *config, const char *value, char ret[TEXT_MAX],
			 struct error *err)
{
	return put(ret, err, "docker:", socket_path(value), "");
}

/* Of which engine a socket is, its path says: as engines name them. */
static int runtime_socket(const struct config *config, const char *value, char ret[TEXT_MAX],
			  struct error *err)
{
	static const struct {
		const char *part, *kind;
	} engines[] = { { "containerd", "containerd:" },
			{ "crio", "cri-o:" },
			{ "docker", "docker:" },
			{ "podman", "podman:" } };
	for (size_t i = 0; i < sizeof(engines) / sizeof(engines[0]); i++)
		if (strstr(value, engines[i].part))
			return put(ret, err, engines[i].kind, socket_path(value), "");
	return error_set(err, EINVAL,
			 "'%.80s': whose socket is that? container_engines = KIND:PATH says it",
			 value);
}

/* The part of "ADDRESS:PORT" that is not said is what it was, or gpu-manager's default. */
static int port(const struct config *config, const char *value, char ret[TEXT_MAX],
		struct error *err)
{
	const char *now = config->metrics_listen, *colon = strrchr(now, ':');
	bool is_number = *value && strlen(value) <= 5 && !value[strspn(value, "0123456789")];
	if (!is_number)
		return error_set(err, EINVAL, "'%.60s': must be a port, 1 to 65535", value);
	if (!colon || !strncmp(now, "unix:", 5))
		return put(ret, err, "127.0.0.1:", value, "");
	int n = snprintf(ret, TEXT_MAX, "%.*s:%s", (int)(colon - now), now, value);
	return n < TEXT_MAX ? 0 : error_set(err, EINVAL, "longer than %d bytes", TEXT_MAX - 1);
}

static int address(const struct config *config, const char *value, char ret[TEXT_MAX],
		   struct error *err)
{
	const char *now = config->metrics_listen, *colon = strrchr(now, ':');
	const char *number = colon && strncmp(now, "unix:", 5) ? colon + 1 : "5678";
	const char *host = strcmp(value, "localhost") ? value : "127.0.0.1";
	bool is_bare_ipv6 = strchr(host, ':') && *host != '[';
	int n = snprintf(ret, TEXT_MAX, "%s%s%s:%s", is_bare_ipv6 ? "[" : "", host,
			 is_bare_ipv6 ? "]" : "", number);
	return n < TEXT_MAX ? 0 : error_set(err, EINVAL, "longer than %d bytes", TEXT_MAX - 1);
}

static int share(const struct config *config, const char *value, char ret[TEXT_MAX],
		 struct error *err)
{
	bool is_shared;
	int r = parse_bool(value, &is_shared, err);
	return r < 0 ? r : put(ret, err, "", is_shared ? "on" : "off", "");
}

/* "" in `ret`: nothing is to be set. */
static int no_api(const struct config *config, const char *value, char ret[TEXT_MAX],
		  struct error *err)
{
	bool is_alone;
	int r = parse_bool(value, &is_alone, err);
	return r < 0 ? r : put(ret, err, "", is_alone ? "off" : "", "");
}

static int own_api(const struct config *config, const char *value, char ret[TEXT_MAX],
		   struct error *err)
{
	bool is_inside;
	int r = parse_bool(value, &is_inside, err);
	return r < 0 ? r : put(ret, err, "", is_inside ? "in-cluster" : "", "");
}

static int one_driver(const struct config *config, const char *value, char ret[TEXT_MAX],
		      struct error *err)
{
	if (strcmp(value, "nvidia") != 0)
		return error_set(err, EINVAL, "'%.60s': must be nvidia: there is no other driver",
				 value);
	return put(ret, err, "", "", "");
}

/* `setting`: the one of ours that it stands for; NULL where `why` refuses it, or there is nothing to set. */
static const struct foreign {
	const char *name, *setting;
	translate translate; /* NULL: the value is the setting's */
	const char *why;
} foreign[] = {
	/* gpu-manager */
	{ "driver", NULL, one_driver, "nvidia alone" },
	{ "extra_config", NULL, NULL,
	  "device nodes are those that a container's GPUs need; others are the runtime's or a CDI "
	  "file's to give" },
	{ "volume_config", NULL, NULL,
	  "no list of libraries is needed: container_library and container_driver say what containers get" },
	{ "docker_endpoint", "container_engines", docker_socket, "as docker:PATH" },
	{ "container_runtime_endpoint", "container_engines", runtime_socket, "as KIND:PATH" },
	{ "query_port", "metrics_listen", port, "its port" },
	{ "query_addr", "metrics_listen", address, "its address" },
	{ "kubeconfig", "kube_api", NULL, NULL },
	{ "standalone", "kube_api", no_api, "off, if true" },
	{ "incluster_mode", "kube_api", own_api, "in-cluster, if true" },
	{ "sample_period", "census_interval", seconds, "in seconds" },
	{ "node_labels", "kube_labels", NULL, NULL },
	{ "hostname_override", "kube_node_name", NULL, NULL },
	{ "virtual_manager_path", NULL, NULL,
	  "sockets and state of tenants are in --run-dir, and what outlives a reboot in state_dir" },
	{ "device_plugin_path", "kube_plugin_dir", NULL, NULL },
	{ "checkpoint_path", "state_dir", NULL, NULL },
	{ "share_mode", "kube_share", share, "on or off" },
	{ "allocation_check_period", NULL, NULL,
	  "what pods hold is compared all the time, and when something of it changes" },
	{ "cgroup_driver", NULL, NULL,
	  "containers are found with either driver, by what the kernel says" },
	/* HAMi */
	{ "deviceSplitCount", "kube_split_count", NULL, NULL },
	{ "deviceMemoryScaling", "kube_memory_scaling", NULL, NULL },
	{ "deviceCoreScaling", "kube_core_scaling", NULL, NULL },
	{ "resourceName", "kube_resource", NULL, NULL },
	{ "resourcePriorityName", "kube_priority_resource", NULL, NULL },
	{ "filterdevices", "cordon", NULL, "by UUID" },
};
#define COUNT (sizeof(foreign) / sizeof(foreign[0]))

/* '-' and '_' are the same. */
static bool is_name(const char *name, const char *key)
{
	for (; *name && *key; name++, key++)
		if (*name != *key && !(*name == '_' && *key == '-'))
			return false;
	return !*name && !*key;
}

int config_foreign_set(struct config *config, const char *key, const char *value, struct error *err)
{
	const struct foreign *f = NULL;
	for (size_t i = 0; i < COUNT && !f; i++)
		if (is_name(foreign[i].name, key))
			f = &foreign[i];
	if (!f)
		return -ENOENT;
	if (!f->setting && !f->translate)
		return error_set(err, EINVAL, "%s: there is no such setting here: %s", key, f->why);
	char text[TEXT_MAX];
	int r = f->translate ? f->translate(config, value, text, err)
			     : put(text, err, "", value, "");
	if (r < 0)
		return error_add(err, r, "%s", key);
	if (!*text && f->translate)
		return 0;
	r = config_set(config, f->setting, text, err);
	return r < 0 ? error_add(err, r, "%s", key) : 0;
}

const char *config_foreign_name(unsigned index)
{
	return index < COUNT ? foreign[index].name : NULL;
}

void config_foreign_print_help(FILE *out)
{
	for (size_t i = 0; i < COUNT; i++) {
		const struct foreign *f = &foreign[i];
		fprintf(out, "  %-27s %s%s%s%s\n", f->name, f->setting ? f->setting : "",
			f->setting && f->why ? ", " : "",
			!f->setting && !f->translate ? "refused: " : "", f->why ? f->why : "");
	}
}
