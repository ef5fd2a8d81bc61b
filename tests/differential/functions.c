/* The functions that are called, out of the tables that the library and the simulated GPU are made of. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"
#include "abi/driver_table.h"
#include "sim/cuda/sim_table.h"
#include "sim/nvml/nvml_table.h"

struct function *functions;
unsigned int functions_n;

#define ROW_HOOK(symbol, hook, params, args) { .name = #symbol, .params_text = #params },
#define ROW_WORK(symbol, streams, params, args, work) { .name = #symbol, .params_text = #params },
#define ROW(symbol, params) { .name = #symbol, .params_text = #params },
#define ROW_NVML(symbol, params) { .name = #symbol, .params_text = #params, .is_nvml = true },
#define ROW_LOOK(symbol, hook, params, args) ROW_NVML(symbol, params)
#define ROW_NONE(symbol, params, args) ROW_NVML(symbol, params)
static const struct function rows[] = {
	DRIVER_TABLE(ROW_HOOK, ROW_WORK) DRIVER_CALLS(ROW) SIM_TABLE_DEVICE(ROW)
		SIM_TABLE_CONTEXT(ROW) SIM_TABLE_MODULE(ROW) SIM_TABLE_STREAM(ROW)
			SIM_TABLE_MEMORY(ROW) SIM_TABLE_GRAPH(ROW)
				NVML_TABLE(ROW_LOOK, ROW_LOOK, ROW_NONE) NVML_CALLS(ROW_NVML)
					SIM_NVML_TABLE(ROW_NVML)
};

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static const char *const handle_types[] = {
	"CUcontext",        "CUmodule",        "CUfunction",
	"CUlibrary",        "CUkernel",        "CUarray",
	"CUmipmappedArray", "CUevent",         "CUstream",
	"CUgraph",          "CUgraphNode",     "CUgraphExec",
	"CUmemoryPool",     "CUdeviceptr",     "CUmemGenericAllocationHandle",
	"CUlinkState",      "CUgreenCtx",      "CUexternalMemory",
	"nvmlDevice_t",     "nvmlUnit_t",      "CUdevResourceDesc",
	"nvmlEventSet_t",   "nvmlGpmSample_t",
};

static const char *const callback_types[] = { "CUhostFn", "CUstreamCallback", "CUoccupancyB2DSize",
					      "CUgraphRecaptureCallback", "VdpGetProcAddress" };

static bool is_one_of(const char *text, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(text, list[i]))
			return true;
	return false;
}

static unsigned int bytes_of(const char *type)
{
	static const char *const eight[] = { "size_t",     "unsigned long long", "long long",
					     "cuuint64_t", "unsigned long",      "void" };

	if (is_one_of(type, eight, COUNT(eight)) ||
	    is_one_of(type, handle_types, COUNT(handle_types)))
		return 8;
	if (!strcmp(type, "unsigned char") || !strcmp(type, "char"))
		return 1;
	return strcmp(type, "unsigned short") ? 4 : 2;
}

static void parse_param(char *text, struct param *p)
{
	char *words[8], *save = NULL;
	unsigned int n = 0;

	memset(p, 0, sizeof(*p));
	for (char *at = text; *at; at++)
		if (*at == '*') {
			p->stars++;
			*at = ' ';
		}
	for (char *w = strtok_r(text, " ", &save); w && n < COUNT(words);
	     w = strtok_r(NULL, " ", &save)) {
		if (!strcmp(w, "const"))
			p->is_const = true;
		else if (strcmp(w, "struct"))
			words[n++] = w;
	}
	snprintf(p->name, sizeof(p->name), "%s", words[n - 1]);
	for (unsigned int i = 0; i + 1 < n; i++) {
		strncat(p->type, i ? " " : "", sizeof(p->type) - strlen(p->type) - 1);
		strncat(p->type, words[i], sizeof(p->type) - strlen(p->type) - 1);
	}
	p->bytes = p->stars > 1 ? 8 : bytes_of(p->type);
	if (is_one_of(p->type, callback_types, COUNT(callback_types)))
		p->kind = CALLBACK;
	else if (p->stars)
		p->kind = p->stars == 1 && p->is_const && !strcmp(p->type, "char") ? TEXT : POINTER;
	else if (!strcmp(p->type, "CUipcMemHandle") || !strcmp(p->type, "CUipcEventHandle"))
		p->kind = BLOB;
	else if (!strcmp(p->type, "CUmemLocation"))
		p->kind = LOCATION;
	else
		p->kind = is_one_of(p->type, handle_types, COUNT(handle_types)) ? HANDLE : SCALAR;
}

unsigned int parse_params(const char *text, struct param *params, unsigned int most)
{
	char copy[2048], *save = NULL;
	unsigned int n = 0;

	snprintf(copy, sizeof(copy), "%s", text);
	for (char *at = copy; *at; at++)
		if (*at == '(' || *at == ')')
			*at = ' ';
	for (char *p = strtok_r(copy, ",", &save); p && n < most; p = strtok_r(NULL, ",", &save))
		if (strcmp(p + strspn(p, " "), "void") && strcmp(p, " void "))
			parse_param(p, &params[n++]);
	return n;
}

struct function *function_find(const char *name)
{
	for (unsigned int i = 0; i < functions_n; i++)
		if (!strcmp(functions[i].name, name))
			return &functions[i];
	return NULL;
}

/* On a real GPU these would change it for everybody. */
static bool changes_settings(const char *name)
{
	static const char *const parts[] = {
		"nvmlDeviceSet",    "nvmlDeviceReset",  "nvmlDeviceClear", "nvmlDeviceCreate",
		"nvmlDeviceModify", "nvmlDeviceRemove", "nvmlGpuInstance", "nvmlComputeInstance",
		"nvmlUnitSet",      "nvmlSystemSet",    "nvmlVgpu",        "Freeze"
	};

	for (size_t i = 0; i < COUNT(parts); i++)
		if (strstr(name, parts[i]))
			return true;
	return false;
}

static void *open_library(const char *name)
{
	void *library = dlopen(name, RTLD_NOW);

	if (!library) {
		fprintf(stderr, "differential-calls: %s\n", dlerror());
		exit(2);
	}
	return library;
}

void functions_load(void)
{
	void *cuda = open_library("libcuda.so.1"), *nvml = open_library("libnvidia-ml.so.1");

	functions = calloc(COUNT(rows), sizeof(*functions));
	if (!functions)
		exit(2);
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct function *f = &functions[functions_n];

		if (function_find(rows[i].name) || changes_settings(rows[i].name))
			continue;
		*f = rows[i];
		f->address = dlsym(f->is_nvml ? nvml : cuda, f->name);
		f->params_n = parse_params(f->params_text, f->params, PARAMS_MAX);
		functions_n++;
	}
}
