/*
 * Modules and functions. Code is not read, but takes GPU memory by the length of its image. A function's name gives its cost:
 *
 *     allot_sim_<us>us_<blocks>b   <us> for the whole grid of <blocks> blocks, on an idle GPU
 *     allot_sim_spin_<blocks>b     until the 32 bits at the address in its first parameter are not 0
 *     anything else                10 us
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sim/cuda/sim.h"

#define DEFAULT_NS 10000
/* Size of every __device__ variable. The real size is in the code, which is not read. */
#define GLOBAL_BYTES 4096
#define CODE_FREE_BYTES (64 << 10) /* so much code fits in the context's own memory */

/* Code may be PTX, an ELF file (cubin), a fat binary, or nvcc's wrapper of a fat binary. */
#define ELF_MAGIC 0x464c457fu
#define FAT_MAGIC 0xba55ed50u
#define WRAPPER_MAGIC 0x466243b1u

struct elf_head {
	uint32_t magic;
	unsigned char skipped[36];
	uint64_t sections_at;
	unsigned char skipped_too[10];
	uint16_t section_bytes, sections;
};

struct fat_head {
	uint32_t magic;
	uint16_t version, head_bytes;
	uint64_t bytes;
};

struct wrapper {
	uint32_t magic, version;
	const void *fat;
};

static CUmodule modules;

static uint64_t image_bytes(const void *image)
{
	uint32_t magic = 0;
	struct wrapper wrapper;
	struct elf_head elf;
	struct fat_head fat;

	for (unsigned int i = 0; i < sizeof(magic) && (!i || ((const char *)image)[i - 1]); i++)
		memcpy((char *)&magic + i, (const char *)image + i, 1);
	if (magic == WRAPPER_MAGIC) {
		memcpy(&wrapper, image, sizeof(wrapper));
		return wrapper.fat ? image_bytes(wrapper.fat) : 0;
	}
	if (magic == FAT_MAGIC) {
		memcpy(&fat, image, sizeof(fat));
		return fat.head_bytes + fat.bytes;
	}
	if (magic == ELF_MAGIC) {
		memcpy(&elf, image, sizeof(elf));
		return elf.sections_at + (uint64_t)elf.section_bytes * elf.sections;
	}
	return strlen(image);
}

static CUresult load(CUmodule *module, uint64_t bytes)
{
	CUcontext ctx;
	uint32_t block = 0;

	SIM_TRY(sim_need_context(&ctx));
	SIM_WITH_LOCK();
	if (bytes > CODE_FREE_BYTES)
		SIM_TRY(sim_block_new(ctx->dev, sim_round(ctx->dev, bytes), SIM_BLOCK_DATA, &block));
	CUmodule m = calloc(1, sizeof(*m));
	if (!m) {
		sim_block_free(block);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*m = (struct CUmod_st){ .magic = MAGIC_MODULE, .ctx = ctx, .next = modules, .block = block };
	*module = modules = m;
	return CUDA_SUCCESS;
}

static CUresult load_image(CUmodule *module, const void *image)
{
	return module && image ? load(module, image_bytes(image)) : CUDA_ERROR_INVALID_VALUE;
}

/* The structs stay, because a faulty program may still launch the module's functions. Call with sim.lock held. */
static void unload(CUmodule module)
{
	CUmodule *at;

	for (at = &modules; *at && *at != module; at = &(*at)->next)
		;
	if (*at)
		*at = module->next;
	sim_block_free(module->block);
	module->magic = 0;
	for (CUfunction f = module->functions; f; f = f->next)
		f->magic = 0;
}

void sim_modules_of_context_gone(CUcontext ctx)
{
	CUmodule m, next;

	for (m = modules; m; m = next) {
		next = m->next;
		if (m->ctx == ctx)
			unload(m);
	}
}

static CUresult load_file(CUmodule *module, const char *path)
{
	struct stat st;

	SIM_FAIL_IF(!module || !path, CUDA_ERROR_INVALID_VALUE);
	SIM_FAIL_IF(stat(path, &st) < 0, CUDA_ERROR_FILE_NOT_FOUND);
	return load(module, (uint64_t)st.st_size);
}

SIM_FUNCTION(cuModuleLoad, (CUmodule * module, const char *path), load_file(module, path))
SIM_FUNCTION(cuModuleLoadData, (CUmodule * module, const void *image), load_image(module, image))
SIM_FUNCTION(cuModuleLoadDataEx,
	     (CUmodule * module, const void *image, unsigned int n, CUjit_option *options,
	      void **values),
	     load_image(module, image))
SIM_FUNCTION(cuModuleLoadFatBinary, (CUmodule * module, const void *image),
	     load_image(module, image))

static bool is_module(CUmodule module)
{
	return module && module->magic == MAGIC_MODULE;
}

static CUresult module_unload(CUmodule module)
{
	SIM_FAIL_IF(!is_module(module), CUDA_ERROR_INVALID_HANDLE);
	SIM_WITH_LOCK();
	unload(module);
	return CUDA_SUCCESS;
}

SIM_FUNCTION(cuModuleUnload, (CUmodule module), module_unload(module))
/* A library is a module and a kernel is a function, so one struct serves both handles. */
SIM_FUNCTION(cuLibraryUnload, (CUlibrary library), module_unload((CUmodule)library))

static void cost_of_name(CUfunction f)
{
	unsigned long long us, blocks;
	char end[2];

	f->ns = DEFAULT_NS;
	if (sscanf(f->name, "allot_sim_%12lluus_%9llu%1[b]", &us, &blocks, end) == 3) {
		f->ns = us * 1000;
		f->blocks = blocks;
	} else if (sscanf(f->name, "allot_sim_spin_%9llu%1[b]", &blocks, end) == 2) {
		f->spins = true;
	}
}

static CUresult get_function(CUfunction *ret_f, CUmodule module, const char *name)
{
	CUfunction f;

	SIM_FAIL_IF(!ret_f || !name || !*name, CUDA_ERROR_INVALID_VALUE);
	SIM_FAIL_IF(!is_module(module), CUDA_ERROR_INVALID_HANDLE);
	SIM_WITH_LOCK();
	for (f = module->functions; f; f = f->next)
		if (!strcmp(f->name, name))
			break;
	if (!f && (f = calloc(1, sizeof(*f) + strlen(name) + 1))) {
		strcpy(f->name, name);
		f->magic = MAGIC_FUNCTION;
		f->module = module;
		cost_of_name(f);
		f->next = module->functions;
		module->functions = f;
	}
	*ret_f = f;
	return f ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* If the name gives a number of blocks, the time is in proportion to `blocks`, but at least that of one block per SM. */
uint64_t sim_kernel_ns(CUfunction f, CUdevice dev, uint64_t blocks)
{
	uint64_t sms = (uint64_t)sim.devices[dev].info.sms;
	uint64_t named = SIM_MAX(f->blocks, sms);

	if (!f->blocks || blocks == f->blocks)
		return f->ns;
	return (uint64_t)((double)f->ns * (double)SIM_MAX(blocks, sms) / (double)named);
}

SIM_FUNCTION(cuModuleGetFunction, (CUfunction * f, CUmodule module, const char *name),
	     get_function(f, module, name))

static CUresult get_global(CUdeviceptr *ptr, size_t *bytes, CUmodule module, const char *name)
{
	CUdeviceptr at = 0;

	SIM_FAIL_IF(!is_module(module), CUDA_ERROR_INVALID_HANDLE);
	SIM_FAIL_IF(!name || !*name, CUDA_ERROR_INVALID_VALUE);
	/* Each call may return a new address, because no program depends on the variable's contents. */
	SIM_WITH_LOCK();
	SIM_TRY(sim_heap_alloc(module->ctx, GLOBAL_BYTES, &at));
	if (ptr)
		*ptr = at;
	if (bytes)
		*bytes = GLOBAL_BYTES;
	return CUDA_SUCCESS;
}

SIM_FUNCTION(cuModuleGetGlobal_v2,
	     (CUdeviceptr * ptr, size_t *bytes, CUmodule module, const char *name),
	     get_global(ptr, bytes, module, name))

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
	SIM_ENTER(cuModuleGetLoadingMode);
	*mode = 2; /* lazy */
	return CUDA_SUCCESS;
}

SIM_FUNCTION(cuLibraryLoadData,
	     (CUlibrary * library, const void *image, CUjit_option *jit, void **jit_values,
	      unsigned int jit_n, CUlibraryOption *options, void **values, unsigned int n),
	     load_image((CUmodule *)library, image))
SIM_FUNCTION(cuLibraryLoadFromFile,
	     (CUlibrary * library, const char *path, CUjit_option *jit, void **jit_values,
	      unsigned int jit_n, CUlibraryOption *options, void **values, unsigned int n),
	     load_file((CUmodule *)library, path))

SIM_FUNCTION(cuLibraryGetKernel, (CUkernel * kernel, CUlibrary library, const char *name),
	     get_function((CUfunction *)kernel, (CUmodule)library, name))

CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library)
{
	SIM_ENTER(cuLibraryGetModule);
	SIM_FAIL_IF(!is_module((CUmodule)library), CUDA_ERROR_INVALID_HANDLE);
	*module = (CUmodule)library;
	return CUDA_SUCCESS;
}

/* The host can access a managed variable too, so its bytes are kept. */
CUresult cuLibraryGetManaged(CUdeviceptr *ptr, size_t *bytes, CUlibrary library, const char *name)
{
	CUmodule module = (CUmodule)library;
	CUdeviceptr at;

	SIM_ENTER(cuLibraryGetManaged);
	SIM_FAIL_IF(!is_module(module), CUDA_ERROR_INVALID_HANDLE);
	SIM_FAIL_IF(!name || !*name, CUDA_ERROR_INVALID_VALUE);
	SIM_TRY(cuMemAllocManaged(&at, GLOBAL_BYTES, CU_MEM_ATTACH_GLOBAL));
	if (ptr)
		*ptr = at;
	if (bytes)
		*bytes = GLOBAL_BYTES;
	return CUDA_SUCCESS;
}

SIM_FUNCTION(cuLibraryGetGlobal,
	     (CUdeviceptr * ptr, size_t *bytes, CUlibrary library, const char *name),
	     get_global(ptr, bytes, (CUmodule)library, name))
