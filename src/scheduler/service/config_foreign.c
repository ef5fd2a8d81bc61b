#include "scheduler/service/config_foreign.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/service/config.h"

#define TEXT_MAX SETTINGS_TEXT_MAX
#define DEBUG_LEAST 4 /* klog's --v from which on it tells of each step */

/* A row's value in words of the setting that it stands for. "" in `ret`: there is nothing to set. */
typedef int (*translate)(const struct config *config, const char *value, char ret[TEXT_MAX],
			 struct error *err);

static int put(char ret[TEXT_MAX], struct error *err, const char *value)
{
	int n = snprintf(ret, TEXT_MAX, "%s", value);
	return n < TEXT_MAX ? 0 : error_set(err, EINVAL, "longer than %d bytes", TEXT_MAX - 1);
}

/* ---- switches, as Go's flags have them ---- */

/* 0 or 1, or -EINVAL. */
static int parse_bool(const char *value, struct error *err)
{
	static const char *const words[] = { "false", "true", "False", "True", "FALSE", "TRUE",
					     "f",     "t",    "F",     "T",    "0",     "1" };
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(value, words[i]))
			return i % 2;
	return error_set(err, EINVAL, "'%.60s': must be true or false", value);
}

/* What is done in any case, or in none. */
static int only(bool wanted, const char *value, char ret[TEXT_MAX], struct error *err)
{
	int r = parse_bool(value, err);
	if (r >= 0 && r != wanted)
		r = -EINVAL;
	return r < 0 ? r : put(ret, err, "");
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
	int r = parse_bool(value, err);
	return r < 0 ? r : put(ret, err, "");
}

static int debug(const struct config *config, const char *value, char ret[TEXT_MAX],
		 struct error *err)
{
	int r = parse_bool(value, err);
	return r < 0 ? r : put(ret, err, r ? "debug" : "");
}

/* ---- values ---- */

static int parse_whole(const char *value, unsigned most, unsigned *ret, struct error *err)
{
	char *end;
	unsigned long number = strtoul(value, &end, 10);
	if (!*value || value[strspn(value, "0123456789")] || strlen(value) > 9 || number > most)
		return error_set(err, EINVAL, "'%.60s': must be a number up to %u", value, most);
	*ret = (unsigned)number;
	return 0;
}

static int verbosity(const struct config *config, const char *value, char ret[TEXT_MAX],
		     struct error *err)
{
	unsigned level;
	int r = parse_whole(value, 999, &level, err);
	return r < 0 ? r : put(ret, err, level >= DEBUG_LEAST ? "debug" : "info");
}

static int mebibytes(const struct config *config, const char *value, char ret[TEXT_MAX],
		     struct error *err)
{
	unsigned mib;
	int r = parse_whole(value, 99999999, &mib, err);
	if (r < 0)
		return r;
	snprintf(ret, TEXT_MAX, mib ? "%uMiB" : "%u", mib);
	return 0;
}

/* As Go has it: "5m0s", "1h30m", "1.5s". */
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
		sum_ms += strtod(at, NULL) * units[i].ms;
		at += digits + letters;
	}
	if (!*value || (*at && strcmp(value, "0") != 0))
		return error_set(err, EINVAL, "'%.60s': must be a duration such as 5m or 28s",
				 value);
	snprintf(ret, TEXT_MAX, "%.0fms", sum_ms);
	return 0;
}

/* HAMi's own default, ":9443", means every address. */
static int address(const struct config *config, const char *value, char ret[TEXT_MAX],
		   struct error *err)
{
	int n = snprintf(ret, TEXT_MAX, "%s%s", *value == ':' ? "0.0.0.0" : "", value);
	return n < TEXT_MAX ? 0 : error_set(err, EINVAL, "longer than %d bytes", TEXT_MAX - 1);
}

static int lease_switch(const struct config *config, const char *value, char ret[TEXT_MAX],
			struct error *err)
{
	int r = parse_bool(value, err);
	return r < 0 ? r : put(ret, err, r ? "" : "none");
}

/* Of one that is not there both are without meaning, in whichever order they come. */
static int lease_part(const struct config *config, bool is_namespace, const char *value,
		      char ret[TEXT_MAX], struct error *err)
{
	const char *slash = strchr(config->lease, '/');
	if (!slash || !*value)
		return put(ret, err, "");
	int before = (int)(slash - config->lease);
	int n = is_namespace ? snprintf(ret, TEXT_MAX, "%s%s", value, slash)
			     : snprintf(ret, TEXT_MAX, "%.*s/%s", before, config->lease, value);
	return n < TEXT_MAX ? 0 : error_set(err, EINVAL, "longer than %d bytes", TEXT_MAX - 1);
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

/* Of settings that have no value for "nothing is said". */
static int unless_empty(const struct config *config, const char *value, char ret[TEXT_MAX],
			struct error *err)
{
	return put(ret, err, value);
}

static int only_empty(const struct config *config, const char *value, char ret[TEXT_MAX],
		      struct error *err)
{
	return *value ? -EINVAL : put(ret, err, "");
}

/* ---- the flags ---- */

#define IS_SWITCH true
#define OTHER_DEVICES "devices are NVIDIA's alone"
#define LOGS "it logs to standard error, a line a message"
#define NO_LIMIT "requests are not held back here: the API server's priority and fairness does that"

/* `setting`: the one of ours that it stands for; NULL with `translate`: what is done anyway; NULL without: refused. */
static const struct foreign {
	const char *name, *setting;
	translate translate; /* NULL: the value is the setting's */
	const char *why;
	bool is_switch;
} foreign[] = {
	{ "http_bind", "https_listen", address, "by TLS; without: http_listen" },
	{ "cert_file", "tls_certificate", unless_empty, NULL },
	{ "key_file", "tls_key", unless_empty, NULL },
	{ "scheduler-name", "scheduler_name", unless_empty, NULL },
	{ "default-mem", "default_memory", mebibytes, "in MiB" },
	{ "default-cores", "default_cores", NULL, NULL },
	{ "default-gpu", "default_gpus", NULL, NULL },
	{ "node-scheduler-policy", "node_policy", NULL, NULL },
	{ "gpu-scheduler-policy", "gpu_policy", NULL, NULL },
	{ "metrics-bind-address", NULL, NULL, "/metrics is served at https_listen and http_listen" },
	{ "node-label-selector", NULL, only_empty, "nodes are those that say which cards they have" },
	{ "kube-qps", NULL, NULL, NO_LIMIT },
	{ "kube-burst", NULL, NULL, NO_LIMIT },
	{ "kube-timeout", NULL, NULL, "a request has 30 s, a binding bind_limit" },
	{ "profiling", NULL, only_false, "perf(1) needs no help of ours", IS_SWITCH },
	{ "node-lock-timeout", "lock_expiry", duration, NULL },
	{ "node-lock-retry-timeout", "bind_limit", duration, "the whole binding's" },
	{ "force-overwrite-default-scheduler", NULL, only_true,
	  "pods that name no scheduler, or Kubernetes' default, get scheduler_name", IS_SWITCH },
	{ "leader-elect", "lease", lease_switch, "none, if false", IS_SWITCH },
	{ "leader-elect-resource-name", "lease", lease_name, "its name" },
	{ "leader-elect-resource-namespace", "lease", lease_namespace, "its namespace" },
	{ "legacy-metrics", NULL, only_false, "metrics have the names of HAMi 2.10", IS_SWITCH },
	{ "device-plugin-namespace", NULL, NULL, "nothing is asked of the device plugin" },
	{ "device-plugin-service-account", NULL, NULL, "nothing is asked of the device plugin" },
	{ "device-config-file", NULL, NULL,
	  "what it says of nvidia are settings here, under its names too, and the nodes' are allotd's" },
	{ "debug", "log_level", debug, "debug, if true", IS_SWITCH },
	/* What that file has of nvidia, and older versions as flags. */
	{ "resourceCountName", "gpu_resource", NULL, NULL },
	{ "resourceMemoryName", "memory_resource", NULL, NULL },
	{ "resourceMemoryPercentageName", "memory_percent_resource", NULL, NULL },
	{ "resourceCoreName", "cores_resource", NULL, NULL },
	{ "resourcePriorityName", "priority_resource", NULL, NULL },
	{ "defaultMemory", "default_memory", mebibytes, "in MiB" },
	{ "defaultCores", "default_cores", NULL, NULL },
	{ "defaultGPUNum", "default_gpus", NULL, NULL },
	{ "overwriteEnv", NULL, only_false,
	  "guard_environment = rewrite takes such variables out, of pods with GPUs", IS_SWITCH },
	{ "resource-name", "gpu_resource", NULL, NULL },
	{ "resource-mem", "memory_resource", NULL, NULL },
	{ "resource-mem-percentage", "memory_percent_resource", NULL, NULL },
	{ "resource-cores", "cores_resource", NULL, NULL },
	{ "resource-priority", "priority_resource", NULL, NULL },
	/* Other devices. */
	{ "enable-ascend", NULL, only_false, OTHER_DEVICES, IS_SWITCH },
	{ "enable-iluvatar", NULL, only_false, OTHER_DEVICES, IS_SWITCH },
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
	{ "sgpu-topology-aware", NULL, only_false, OTHER_DEVICES, IS_SWITCH },
	{ "mthreads-name", NULL, NULL, OTHER_DEVICES },
	{ "mthreads-memory", NULL, NULL, OTHER_DEVICES },
	{ "mthreads-cores", NULL, NULL, OTHER_DEVICES },
	/* klog's */
	{ "v", "log_level", verbosity, "info; debug from 4 on" },
	{ "vmodule", NULL, only_empty, "log_level is for all of it" },
	{ "logtostderr", NULL, only_true, LOGS, IS_SWITCH },
	{ "alsologtostderr", NULL, any_bool, LOGS, IS_SWITCH },
	{ "legacy_stderr_threshold_behavior", NULL, any_bool, LOGS, IS_SWITCH },
	{ "alsologtostderrthreshold", NULL, NULL, LOGS },
	{ "stderrthreshold", NULL, NULL, LOGS },
	{ "log_dir", NULL, only_empty, LOGS },
	{ "log_file", NULL, only_empty, LOGS },
	{ "log_file_max_size", NULL, NULL, LOGS },
	{ "log_backtrace_at", NULL, NULL, LOGS },
	{ "add_dir_header", NULL, only_false, LOGS, IS_SWITCH },
	{ "skip_headers", NULL, only_false, LOGS, IS_SWITCH },
	{ "skip_log_headers", NULL, any_bool, LOGS, IS_SWITCH },
	{ "one_output", NULL, any_bool, LOGS, IS_SWITCH },
};
#define COUNT (sizeof(foreign) / sizeof(foreign[0]))

/* Of a row that sets nothing: what it may say. */
static const char *demand(const struct foreign *f)
{
	return f->translate == only_true    ? "must be true"
	       : f->translate == only_false ? "must be false"
	       : f->translate == only_empty ? "must be empty"
	       : f->translate               ? "must be true or false"
					    : "there is no such setting here";
}

/* '-' and '_' are the same. */
static bool is_name(const char *name, const char *key)
{
	for (; *name && *key; name++, key++)
		if ((*name == '-' ? '_' : *name) != (*key == '-' ? '_' : *key))
			return false;
	return !*name && !*key;
}

int config_foreign_set(void *config, const char *key, const char *value, struct error *err)
{
	const struct foreign *f = NULL;
	char text[TEXT_MAX];
	for (size_t i = 0; i < COUNT && !f; i++)
		if (is_name(foreign[i].name, key))
			f = &foreign[i];
	if (!f)
		return -ENOENT;
	int r = f->translate ? f->translate(config, value, text, err)
		: f->setting ? put(text, err, value)
			     : -EINVAL;
	if (r < 0 && !f->setting)
		return error_set(err, EINVAL, "%s: '%.60s': %s: %s", key, value, demand(f), f->why);
	if (r < 0)
		return error_add(err, r, "%s", key);
	if (!*text && f->translate)
		return 0;
	r = settings_set(&config_table, config, f->setting, text, err);
	return r < 0 ? error_add(err, r, "%s", key) : 0;
}

const char *config_foreign_name(unsigned index, bool *ret_is_switch)
{
	if (index >= COUNT)
		return NULL;
	*ret_is_switch = foreign[index].is_switch;
	return foreign[index].name;
}

void config_foreign_print_help(FILE *out)
{
	for (size_t i = 0; i < COUNT; i++) {
		const struct foreign *f = &foreign[i];
		const char *between = f->setting && f->why ? ", " : "";
		fprintf(out, "  %-37s %s%s%s\n", f->name,
			f->setting     ? f->setting
			: f->translate ? demand(f)
				       : "refused",
			f->setting ? between : ": ", f->why ? f->why : "");
	}
}
