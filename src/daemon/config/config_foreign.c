#include "daemon/config/config_foreign.h"

#include <errno.h>
#include <string.h>

#define TEXT_MAX SETTINGS_TEXT_MAX

/* In gpu-manager, a number without a unit means seconds. */
static int seconds(const struct config *config, const char *value, char ret[TEXT_MAX],
		   struct error *err)
{
	bool is_number = *value && !value[strspn(value, "0123456789")];
	return settings_put(ret, err, "%s%s", value, is_number ? "s" : "");
}

static const char *socket_path(const char *value)
{
	static const char scheme[] = "unix://";
	return strncmp(value, scheme, sizeof(scheme) - 1) ? value : value + sizeof(scheme) - 1;
}

static int docker_socket(const struct config *config, const char *value, char ret[TEXT_MAX],
			 struct error *err)
{
	return settings_put(ret, err, "docker:%s", socket_path(value));
}

/* Yields "KIND:PATH". The path of the engine's socket shows the kind. */
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
			return settings_put(ret, err, "%s%s", engines[i].kind, socket_path(value));
	return error_set(err, EINVAL,
			 "'%.80s': can't tell which engine's socket this is: set "
			 "container_engines = KIND:PATH",
			 value);
}

/* Yields "ADDRESS:PORT", with metrics_listen's address, or else gpu-manager's default. */
static int port(const struct config *config, const char *value, char ret[TEXT_MAX],
		struct error *err)
{
	const char *now = config->metrics_listen, *colon = strrchr(now, ':');
	bool is_number = *value && strlen(value) <= 5 && !value[strspn(value, "0123456789")];
	if (!is_number)
		return error_set(err, EINVAL, "'%.60s': must be a port, 1 to 65535", value);
	if (!colon || !strncmp(now, "unix:", 5))
		return settings_put(ret, err, "127.0.0.1:%s", value);
	return settings_put(ret, err, "%.*s:%s", (int)(colon - now), now, value);
}

static int address(const struct config *config, const char *value, char ret[TEXT_MAX],
		   struct error *err)
{
	const char *now = config->metrics_listen, *colon = strrchr(now, ':');
	const char *number = colon && strncmp(now, "unix:", 5) ? colon + 1 : "5678";
	const char *host = strcmp(value, "localhost") ? value : "127.0.0.1";
	bool is_bare_ipv6 = strchr(host, ':') && *host != '[';
	return settings_put(ret, err, "%s%s%s:%s", is_bare_ipv6 ? "[" : "", host,
			    is_bare_ipv6 ? "]" : "", number);
}

static int put_bool(const char *value, char ret[TEXT_MAX], struct error *err, const char *if_true,
		    const char *if_false)
{
	int r = settings_parse_bool(value, err);
	return r < 0 ? r : settings_put(ret, err, "%s", r ? if_true : if_false);
}

static int share(const struct config *config, const char *value, char ret[TEXT_MAX],
		 struct error *err)
{
	return put_bool(value, ret, err, "on", "off");
}

static int no_api(const struct config *config, const char *value, char ret[TEXT_MAX],
		  struct error *err)
{
	return put_bool(value, ret, err, "off", "");
}

static int own_api(const struct config *config, const char *value, char ret[TEXT_MAX],
		   struct error *err)
{
	return put_bool(value, ret, err, "in-cluster", "");
}

static int one_driver(const struct config *config, const char *value, char ret[TEXT_MAX],
		      struct error *err)
{
	return strcmp(value, "nvidia") ? -EINVAL : settings_put(ret, err, "%s", "");
}

const struct settings_alias config_aliases[] = {
	/* gpu-manager's names: */
	{ "driver", NULL, one_driver, "allot supports only NVIDIA's driver", "must be nvidia" },
	{ "extra_config", NULL, NULL,
	  "a container gets the device nodes of its GPUs; add others in the "
	  "container runtime or in a CDI file" },
	{ "volume_config", NULL, NULL,
	  "no list of libraries is needed: NVIDIA's container toolkit gives containers the driver; for other "
	  "files, run allot mirror --config FILE DIR and set container_driver = DIR" },
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
	  "allotd compares the kubelet's records with its own all the time, and "
	  "after each change" },
	{ "cgroup_driver", NULL, NULL,
	  "containers are found with both cgroup drivers, systemd and cgroupfs" },
	/* HAMi's names: */
	{ "deviceSplitCount", "kube_split_count", NULL, NULL },
	{ "deviceMemoryScaling", "kube_memory_scaling", NULL, NULL },
	{ "deviceCoreScaling", "kube_core_scaling", NULL, NULL },
	{ "resourceName", "kube_resource", NULL, NULL },
	{ "resourcePriorityName", "kube_priority_resource", NULL, NULL },
	{ "filterdevices", "cordon", NULL, "by UUID" },
	{ NULL },
};
