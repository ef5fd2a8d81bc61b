#include "scheduler/service/config_foreign.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/service/config.h"

#define TEXT_MAX SETTINGS_TEXT_MAX
#define DEBUG_LEAST 4 /* least klog verbosity (--v) that becomes log_level = debug */

/* `wanted` is the value that asks for what allot-scheduler always does; the other value is refused. */
static int only(bool wanted, const char *value, char ret[TEXT_MAX], struct error *err)
{
	int r = settings_parse_bool(value, err);
	if (r >= 0 && r != wanted)
		r = -EINVAL;
	return r < 0 ? r : settings_put(ret, err, "%s", "");
}

static int only_true(const struct config *config, const char *value, char ret[TEXT_MAX],
		     struct error *err)
{
	return only(true, value, ret, err);
}

static int only_false(const struct config *config, const char *value, char ret[TEXT_MAX],
		      struct error *err)
{
	return only(false, value, ret, err);
}

static int any_bool(const struct config *config, const char *value, char ret[TEXT_MAX],
		    struct error *err)
{
	int r = settings_parse_bool(value, err);
	return r < 0 ? r : settings_put(ret, err, "%s", "");
}

static int debug(const struct config *config, const char *value, char ret[TEXT_MAX],
		 struct error *err)
{
	int r = settings_parse_bool(value, err);
	return r < 0 ? r : settings_put(ret, err, "%s", r ? "debug" : "");
}

static int parse_whole(const char *value, unsigned most, unsigned *ret, struct error *err)
{
	char *end;
	unsigned long number = strtoul(value, &end, 10);
	if (!*value || value[strspn(value, "0123456789")] || strlen(value) > 9 || number > most)
		return error_set(err, EINVAL, "'%.60s': must be a whole number from 0 to %u", value,
				 most);
	*ret = (unsigned)number;
	return 0;
}

static int verbosity(const struct config *config, const char *value, char ret[TEXT_MAX],
		     struct error *err)
{
	unsigned level;
	int r = parse_whole(value, 999, &level, err);
	return r < 0 ? r : settings_put(ret, err, "%s", level >= DEBUG_LEAST ? "debug" : "info");
}

static int mebibytes(const struct config *config, const char *value, char ret[TEXT_MAX],
		     struct error *err)
{
	unsigned mib;
	int r = parse_whole(value, 99999999, &mib, err);
	if (r < 0)
		return r;
	return settings_put(ret, err, "%u%s", mib, mib ? "MiB" : "");
}

/* Reads a duration in Go's format: "5m0s", "1h30m", "1.5s". */
static int duration(const struct config *config, const char *value, char ret[TEXT_MAX],
		    struct error *err)
{
	static const struct {
		const char *name;
		double ms;
	} units[] = { { "ms", 1 }, { "s", 1e3 }, { "m", 6e4 }, { "h", 36e5 } };
	double sum_ms = 0;
	const char *at = value;
	while (*at && strcmp(value, "0") != 0) {
		size_t digits = strspn(at, "0123456789."), i = 0;
		size_t letters = strcspn(at + digits, "0123456789.");
		while (i < 4 && (strlen(units[i].name) != letters ||
				 strncmp(units[i].name, at + digits, letters) != 0))
			i++;
		if (!digits || digits > 12 || i == 4)
			break;
		char *end;
		sum_ms += strtod(at, &end) * units[i].ms;
		if (end != at + digits)
			break;
		at += digits + letters;
	}
	if (!*value || (*at && strcmp(value, "0") != 0))
		return error_set(err, EINVAL, "'%.60s': must be a duration such as 5m or 28s",
				 value);
	return settings_put(ret, err, "%.0fms", sum_ms);
}

/* HAMi's default ":9443", without an address, means every address. */
static int address(const struct config *config, const char *value, char ret[TEXT_MAX],
		   struct error *err)
{
	return settings_put(ret, err, "%s%s", *value == ':' ? "0.0.0.0" : "", value);
}

static int lease_switch(const struct config *config, const char *value, char ret[TEXT_MAX],
			struct error *err)
{
	int r = settings_parse_bool(value, err);
	return r < 0 ? r : settings_put(ret, err, "%s", r ? "" : "none");
}

/* Sets the namespace or name in our setting `lease`; nothing if no lease is configured. */
static int lease_part(const struct config *config, bool is_namespace, const char *value,
		      char ret[TEXT_MAX], struct error *err)
{
	const char *slash = strchr(config->lease, '/');
	if (!slash || !*value)
		return settings_put(ret, err, "%s", "");
	int before = (int)(slash - config->lease);
	return is_namespace ? settings_put(ret, err, "%s%s", value, slash)
			    : settings_put(ret, err, "%.*s/%s", before, config->lease, value);
}

static int lease_name(const struct config *config, const char *value, char ret[TEXT_MAX],
		      struct error *err)
{
	return lease_part(config, false, value, ret, err);
}

static int lease_namespace(const struct config *config, const char *value, char ret[TEXT_MAX],
			   struct error *err)
{
	return lease_part(config, true, value, ret, err);
}

/* For settings that must not be empty: an empty flag leaves the setting as it is. */
static int unless_empty(const struct config *config, const char *value, char ret[TEXT_MAX],
			struct error *err)
{
	return settings_put(ret, err, "%s", value);
}

static int only_empty(const struct config *config, const char *value, char ret[TEXT_MAX],
		      struct error *err)
{
	return *value ? -EINVAL : settings_put(ret, err, "%s", "");
}

#define OTHER_DEVICES "allot-scheduler serves only NVIDIA GPUs"
#define LOGS "allot-scheduler logs to standard error, one line per message"
#define NO_LIMIT \
	"allot-scheduler does not limit its own requests: the API server's Priority and Fairness does"

#define ONLY_TRUE(name, why) \
	{ \
		name, NULL, only_true, why, "must be true", true \
	}
#define ONLY_FALSE(name, why) \
	{ \
		name, NULL, only_false, why, "must be false", true \
	}
#define ONLY_EMPTY(name, why) \
	{ \
		name, NULL, only_empty, why, "must be empty" \
	}
#define ANY_BOOL(name, why) \
	{ \
		name, NULL, any_bool, why, "must be true or false", true \
	}

const struct settings_alias config_aliases[] = {
	{ "http_bind", "https_listen", address,
	  "with TLS; for an address without TLS use http_listen" },
	{ "cert_file", "tls_certificate", unless_empty, NULL },
	{ "key_file", "tls_key", unless_empty, NULL },
	{ "scheduler-name", "scheduler_name", unless_empty, NULL },
	{ "default-mem", "default_memory", mebibytes, "in MiB" },
	{ "default-cores", "default_cores", NULL, NULL },
	{ "default-gpu", "default_gpus", NULL, NULL },
	{ "node-scheduler-policy", "node_policy", NULL, NULL },
	{ "gpu-scheduler-policy", "gpu_policy", NULL, NULL },
	{ "metrics-bind-address", NULL, NULL, "/metrics is served at https_listen and http_listen" },
	ONLY_EMPTY("node-label-selector", "allot-scheduler uses every node that reports GPUs"),
	{ "kube-qps", NULL, NULL, NO_LIMIT },
	{ "kube-burst", NULL, NULL, NO_LIMIT },
	{ "kube-timeout", NULL, NULL,
	  "a request to the API server may take 30 s, a binding bind_limit" },
	ONLY_FALSE("profiling", "there is no profiling endpoint: use perf(1)"),
	{ "node-lock-timeout", "lock_expiry", duration, NULL },
	{ "node-lock-retry-timeout", "bind_limit", duration,
	  "limit of the whole binding, not only of the wait for the lock" },
	ONLY_TRUE("force-overwrite-default-scheduler",
		  "pods that name no scheduler, or Kubernetes' default, get scheduler_name"),
	{ "leader-elect", "lease", lease_switch, "none, if false", NULL, true },
	{ "leader-elect-resource-name", "lease", lease_name, "the part NAME of lease" },
	{ "leader-elect-resource-namespace", "lease", lease_namespace,
	  "the part NAMESPACE of lease" },
	ONLY_FALSE("legacy-metrics", "metrics have the names of HAMi 2.10"),
	{ "device-plugin-namespace", NULL, NULL,
	  "allot-scheduler does not contact the device plugin" },
	{ "device-plugin-service-account", NULL, NULL,
	  "allot-scheduler does not contact the device plugin" },
	{ "device-config-file", NULL, NULL,
	  "its keys for nvidia are settings of allot-scheduler, also under their names there; its keys for nodes are settings of allotd" },
	{ "debug", "log_level", debug, "debug, if true", NULL, true },
	/* Keys of HAMi's device configuration, which were flags in older versions of HAMi. */
	{ "resourceCountName", "gpu_resource", NULL, NULL },
	{ "resourceMemoryName", "memory_resource", NULL, NULL },
	{ "resourceMemoryPercentageName", "memory_percent_resource", NULL, NULL },
	{ "resourceCoreName", "cores_resource", NULL, NULL },
	{ "resourcePriorityName", "priority_resource", NULL, NULL },
	{ "defaultMemory", "default_memory", mebibytes, "in MiB" },
	{ "defaultCores", "default_cores", NULL, NULL },
	{ "defaultGPUNum", "default_gpus", NULL, NULL },
	ONLY_FALSE(
		"overwriteEnv",
		"use guard_environment = rewrite, which removes such variables from pods with GPUs"),
	{ "resource-name", "gpu_resource", NULL, NULL },
	{ "resource-mem", "memory_resource", NULL, NULL },
	{ "resource-mem-percentage", "memory_percent_resource", NULL, NULL },
	{ "resource-cores", "cores_resource", NULL, NULL },
	{ "resource-priority", "priority_resource", NULL, NULL },
	ONLY_FALSE("enable-ascend", OTHER_DEVICES),
	ONLY_FALSE("enable-iluvatar", OTHER_DEVICES),
	{ "cambricon-mlu-name", NULL, NULL, OTHER_DEVICES },
	{ "cambricon-mlu-memory", NULL, NULL, OTHER_DEVICES },
	{ "cambricon-mlu-cores", NULL, NULL, OTHER_DEVICES },
	{ "enflame-gcu-resource-name", NULL, NULL, OTHER_DEVICES },
	{ "enflame-drs-gcu-resource-name", NULL, NULL, OTHER_DEVICES },
	{ "enflame-gcu-memory-resource-name", NULL, NULL, OTHER_DEVICES },
	{ "enflame-gcu-core-resource-name", NULL, NULL, OTHER_DEVICES },
	{ "enflame-vgcu-resource-name", NULL, NULL, OTHER_DEVICES },
	{ "enflame-vgcu-legacy-resource-name", NULL, NULL, OTHER_DEVICES },
	{ "enflame-vgcu-percentage-resource-name", NULL, NULL, OTHER_DEVICES },
	{ "dcu-name", NULL, NULL, OTHER_DEVICES },
	{ "dcu-memory", NULL, NULL, OTHER_DEVICES },
	{ "dcu-cores", NULL, NULL, OTHER_DEVICES },
	{ "kunlun-name", NULL, NULL, OTHER_DEVICES },
	{ "kunlun-vcount", NULL, NULL, OTHER_DEVICES },
	{ "kunlun-vmemory", NULL, NULL, OTHER_DEVICES },
	{ "metax-name", NULL, NULL, OTHER_DEVICES },
	{ "metax-vcount", NULL, NULL, OTHER_DEVICES },
	{ "metax-vcore", NULL, NULL, OTHER_DEVICES },
	{ "metax-vmemory", NULL, NULL, OTHER_DEVICES },
	ONLY_FALSE("sgpu-topology-aware", OTHER_DEVICES),
	{ "mthreads-name", NULL, NULL, OTHER_DEVICES },
	{ "mthreads-memory", NULL, NULL, OTHER_DEVICES },
	{ "mthreads-cores", NULL, NULL, OTHER_DEVICES },
	/* Flags of klog, the logging library of Kubernetes. */
	{ "v", "log_level", verbosity, "info; debug from 4 on" },
	ONLY_EMPTY("vmodule", "log_level applies to the whole program"),
	ONLY_TRUE("logtostderr", LOGS),
	ANY_BOOL("alsologtostderr", LOGS),
	ANY_BOOL("legacy_stderr_threshold_behavior", LOGS),
	{ "alsologtostderrthreshold", NULL, NULL, LOGS },
	{ "stderrthreshold", NULL, NULL, LOGS },
	ONLY_EMPTY("log_dir", LOGS),
	ONLY_EMPTY("log_file", LOGS),
	{ "log_file_max_size", NULL, NULL, LOGS },
	{ "log_backtrace_at", NULL, NULL, LOGS },
	ONLY_FALSE("add_dir_header", LOGS),
	ONLY_FALSE("skip_headers", LOGS),
	ANY_BOOL("skip_log_headers", LOGS),
	ANY_BOOL("one_output", LOGS),
	{ NULL },
};
