/* An argument for a parameter, by its type and name, of a class. */
#include "calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define SLOT_BYTES (4u << 20) /* no copy that a good size asks for leaves its slot */
#define SLOTS 40
#define NESTED PARAMS_MAX /* from here on, slots that fields of structures point to */
#define LATE (SLOTS - 1)  /* what work of a stream may write later, and so nobody compares */
#define PATTERN 0xa5
#define LIST_MAX 32 /* entries of 128 bytes fit in a window */
#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static const char image[] = ".version 7.0\n.target sm_52\n.address_size 64\n"
			    ".visible .global .align 8 .u64 cell[512];\n"
			    ".visible .entry tick()\n{\n\tret;\n}\n";

static unsigned char *slots;
static unsigned int nested;

/* Structures that a good value is known of: their fields, laid out as C does. */
#define COPY_ENDS(size, ptr) \
#size " srcX, " #size " srcY, CUmemorytype srcMemoryType, void *srcHost, " #ptr \
	      " srcDevice, CUarray srcArray, " #size " srcPitch, " #size " dstX, " #size \
	      " dstY, CUmemorytype dstMemoryType, void *dstHost, " #ptr \
	      " dstDevice, CUarray dstArray, " #size " dstPitch, " #size " WidthInBytes, " #size \
	      " Height"
#define COPY_ENDS_3D(size, ptr, last) \
#size " srcX, " #size " srcY, " #size " srcZ, " #size \
	      " srcLOD, CUmemorytype srcMemoryType, void *srcHost, " #ptr \
	      " srcDevice, CUarray srcArray, " last " src, " #size " srcPitch, " #size \
	      " srcHeight, " #size " dstX, " #size " dstY, " #size " dstZ, " #size \
	      " dstLOD, CUmemorytype dstMemoryType, void *dstHost, " #ptr \
	      " dstDevice, CUarray dstArray, " last " dst, " #size " dstPitch, " #size \
	      " dstHeight, " #size " WidthInBytes, " #size " Height, " #size " Depth"
#define GRID \
	"unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ, unsigned int " \
	"blockDimX, " \
	"unsigned int blockDimY, unsigned int blockDimZ, unsigned int sharedMemBytes"
#define POOL_PROPS \
	"CUmemAllocationType type, CUmemAllocationHandleType handleTypes, CUmemLocationType " \
	"where, " \
	"int id, size_t reserved, size_t reserved, size_t reserved, size_t reserved, size_t " \
	"reserved, " \
	"size_t reserved, size_t reserved, size_t reserved, size_t reserved"

static const struct {
	const char *type, *fields;
} structures[] = {
	{ "CUDA_ARRAY_DESCRIPTOR",
	  "size_t Width, size_t Height, CUarray_format Format, unsigned int NumChannels" },
	{ "CUDA_ARRAY_DESCRIPTOR_v1", "unsigned int Width, unsigned int Height, CUarray_format "
				      "Format, unsigned int NumChannels" },
	{ "CUDA_ARRAY3D_DESCRIPTOR", "size_t Width, size_t Height, size_t Depth, CUarray_format "
				     "Format, unsigned int NumChannels, "
				     "unsigned int Flags" },
	{ "CUDA_ARRAY3D_DESCRIPTOR_v1",
	  "unsigned int Width, unsigned int Height, unsigned int Depth, CUarray_format Format, "
	  "unsigned int NumChannels, unsigned int Flags" },
	{ "CUDA_MEMCPY2D", COPY_ENDS(size_t, CUdeviceptr) },
	{ "CUDA_MEMCPY2D_v1", COPY_ENDS(unsigned int, unsigned int) },
	{ "CUDA_MEMCPY3D", COPY_ENDS_3D(size_t, CUdeviceptr, "size_t reserved") },
	{ "CUDA_MEMCPY3D_v1", COPY_ENDS_3D(unsigned int, unsigned int, "size_t reserved") },
	{ "CUDA_MEMCPY3D_PEER", COPY_ENDS_3D(size_t, CUdeviceptr, "CUcontext") },
	{ "CUmemAllocationProp", "CUmemAllocationType type, CUmemAllocationHandleType handleTypes, "
				 "CUmemLocationType where, "
				 "int id, size_t reserved, size_t reserved" },
	{ "CUmemPoolProps", POOL_PROPS },
	{ "CUDA_MEM_ALLOC_NODE_PARAMS",
	  POOL_PROPS ", size_t reserved, size_t reserved, size_t bytesize, size_t reserved" },
	{ "CUlaunchConfig", GRID ", CUstream hStream, size_t reserved, unsigned int reserved" },
	{ "CUDA_LAUNCH_PARAMS",
	  "CUfunction function, " GRID ", CUstream hStream, void **kernelParams" },
	{ "CUDA_KERNEL_NODE_PARAMS",
	  "CUfunction func, " GRID
	  ", void **kernelParams, size_t reserved, size_t reserved, CUcontext ctx" },
	{ "CUDA_MEMSET_NODE_PARAMS", "CUdeviceptr dst, size_t pitch, unsigned int value, unsigned "
				     "int elementSize, size_t width, "
				     "size_t height" },
	{ "CUDA_HOST_NODE_PARAMS", "CUhostFn fn, void *userData" },
	{ "CUDA_GRAPH_INSTANTIATE_PARAMS",
	  "cuuint64_t flags, CUstream hUploadStream, CUgraphNode node, int result" },
	{ "CUmemLocation", "CUmemLocationType where, int id" },
	{ "CUmemAccessDesc", "CUmemLocationType where, int id, CUmemAccess access" },
	{ "CUmulticastObjectProp",
	  "unsigned int numDevices, size_t multicastSize, unsigned long long flags, "
	  "unsigned long long flags" },
	{ "nvmlMemory_v2_t", "version_2_40 version" },
	{ "nvmlProcessDetailList_t",
	  "version_1_24 version, nvmlMode mode, unsigned int count, void *array" },
	{ "nvmlProcessesUtilizationInfo_t",
	  "version_1_24 version, unsigned int count, unsigned long long since, void *array" },
	{ "nvmlUUID_t", "version_1_52 version, nvmlUuidType type" },
};

void arguments_open(void)
{
	slots = mmap(NULL, (size_t)SLOTS * SLOT_BYTES, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (slots == MAP_FAILED)
		exit(2);
}

void *window_of(unsigned int slot)
{
	return slots + (size_t)slot * SLOT_BYTES;
}

void window_fill(void *window, unsigned int slot)
{
	memset(window, PATTERN, WINDOW_BYTES);
}

static uint64_t one_of(const uint64_t *list, size_t n)
{
	return list[random_below(n)];
}
#define ONE_OF(...) \
	one_of((const uint64_t[]){ __VA_ARGS__ }, \
	       sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))

static bool has(const char *text, const char *part)
{
	return strstr(text, part);
}

/* Handles are whole pages there. */
static bool is_of_pages(const struct function *f)
{
	static const char *const names[] = { "cuMemCreate", "cuMemAddress",   "cuMemMap",
					     "cuMemUnmap",  "cuMemSetAccess", "cuMulticast" };

	for (size_t i = 0; i < COUNT(names); i++)
		if (has(f->name, names[i]))
			return true;
	return false;
}

static uint64_t good_scalar(const struct function *f, const struct param *p)
{
	const char *name = p->name, *type = p->type;

	if (has(type, "version_")) {
		unsigned int version, bytes;

		sscanf(type, "version_%u_%u", &version, &bytes);
		return bytes | version << 24;
	}
	if (!strcmp(name, "reserved") || has(name, "hared") || has(name, "timeout") ||
	    has(f->name, "cuStreamWaitValue"))
		return 0;
	if (!strcmp(type, "CUdevice") || !strcmp(name, "ordinal") || !strcmp(name, "id") ||
	    !strcmp(name, "index"))
		return 0;
	if (has(name, "lags"))
		return random_below(4) ? 0 : random_below(5);
	if (has(name, "grid") || has(name, "block") || (strlen(name) == 2 && strchr("gb", name[0])) ||
	    has(name, "numDevices") || has(name, "NumChannels"))
		return ONE_OF(1, 1, 2, 4);
	if (!strcmp(type, "CUarray_format"))
		return 0x20;
	if (has(type, "emorytype"))
		return ONE_OF(1, 2, 2);
	if (!strcmp(type, "CUmemAllocationType") || !strcmp(type, "CUmemLocationType"))
		return 1;
	if (!strcmp(type, "CUmemAccess"))
		return 3;
	if (!strcmp(type, "CUmemAllocationHandleType"))
		return ONE_OF(0, 0, 1);
	if (!strcmp(type, "nvmlUuidType"))
		return 1;
	if (has(type, "attribute") || has(type, "Attr") || has(type, "CUlimit"))
		return random_below(has(type, "device") ? 140 : 16);
	if (has(name, "ersion"))
		return ONE_OF(3020, 4000, 7000, 10000, 11040, 12000, 12080, 13000);
	if (is_of_pages(f) && (has(name, "bytes") || has(name, "multicastSize")))
		return 2u << 20;
	if (has(name, "ffset") || has(name, "X") || has(name, "srcY") || has(name, "srcZ") ||
	    has(name, "LOD") || has(name, "dstY") || has(name, "dstZ") || has(name, "alignment"))
		return 0;
	if (has(name, "itch"))
		return 512;
	if (!strcmp(name, "Height") || !strcmp(name, "Depth") || !strcmp(name, "height"))
		return ONE_OF(0, 1, 1, 4);
	if (!strcmp(name, "WidthInBytes") || has(name, "idth"))
		return ONE_OF(1, 16, 128, 256);
	if (!strcmp(name, "elementSize") || has(name, "element"))
		return ONE_OF(1, 2, 4);
	if (has(name, "jit_") ||
	    ((has(f->name, "Load") || has(f->name, "Link")) && strlen(name) <= 5))
		return 0; /* no options */
	if (has(name, "ount") || (!strcmp(name, "n") && !has(f->name, "Memset")))
		return ONE_OF(0, 1, 1, 2);
	if (has(name, "ength") || (!strcmp(name, "size") && p->bytes == 4))
		return 96;
	if (has(name, "ize") || has(name, "ytes") || !strcmp(name, "n"))
		return ONE_OF(4, 16, 256, 512, 4096);
	if (has(type, "CUstreamCaptureMode"))
		return ONE_OF(0, 1, 2);
	return random_below(3);
}

static uint64_t scalar(const struct function *f, const struct param *p, enum class class)
{
	uint64_t word = good_scalar(f, p);

	/* These would wait, or take memory of the machine by the gigabyte. */
	if (has(p->name, "timeout") || has(f->name, "cuStreamWaitValue"))
		return 0;
	switch (class) {
	case ZERO: word = 0; break;
	case ONE: word = 1; break;
	case STALE: word = 3; break;
	case FOREIGN:
		word = has(p->name, "idth") || has(p->name, "eight") || has(p->name, "epth") ? 513
											     : 4097;
		break;
	case MISALIGNED: word++; break;
	case HUGE_SIZE: word = p->bytes == 8 ? 1ull << 62 : 1u << 31; break;
	case ALL_ONES: word = ~0ull; break;
	default: break;
	}
	/* A list that is longer than its memory is nobody's to survive. */
	if ((has(p->name, "ount") || !strcmp(p->name, "n")) && !has(f->name, "Memset") &&
	    word > LIST_MAX)
		word = LIST_MAX;
	if (p->bytes < 8)
		word &= (1ull << 8 * p->bytes) - 1;
	if (p->bytes == 4 && has(p->name, "bytes") && has(f->name, "Alloc"))
		word &= 0xffff;
	return word;
}

static uint64_t handle(const struct function *f, const struct param *p, enum class class,
		       char *text, size_t size)
{
	const struct object *o = NULL;
	uint64_t word = 0;

	/* A word in memory could be waited for in vain, and one in no memory ends the process later. */
	if (has(f->name, "cuStreamWriteValue") && !strcmp(p->type, "CUdeviceptr") && class != GOOD)
		class = ZERO;
	if (has(f->name, "cuStreamWaitValue") && !strcmp(p->type, "CUdeviceptr"))
		class = ZERO;
	switch (class) {
	case GOOD:
		if (!strcmp(p->type, "CUstream") && random_below(2))
			word = random_below(3);
		else
			o = objects_pick(p->type, true, false);
		break;
	case STALE: o = objects_pick(p->type, false, false); break;
	case FOREIGN:
		/* As an address, what is at another handle's would be overwritten. */
		if (strcmp(p->type, "CUdeviceptr"))
			o = objects_pick(p->type, true, true);
		else
			word = 4096;
		break;
	case MISALIGNED:
		o = objects_pick(p->type, true, false);
		word = o ? 1 : 0;
		break;
	case ONE: word = 1; break;
	case HUGE_SIZE: word = 1ull << 62; break;
	case ALL_ONES: word = ~0ull; break;
	default: break;
	}
	if (o)
		snprintf(text, size, "%s#%u%s%s", o->type, object_number(o), word ? "+1" : "",
			 o->is_live ? "" : " (ended)");
	else
		snprintf(text, size, "%#llx", (unsigned long long)word);
	return word + (o ? o->value : 0);
}

static size_t fill_structure(const struct function *f, const char *fields, unsigned char *at,
			     enum class class);

static int callback(void)
{
	return 0;
}

/* What is in memory that is given to the driver: of a type. Returns the length of a structure, or 0. */
static size_t fill(const struct function *f, const struct param *p, unsigned char *at)
{
	const struct object *o;

	for (size_t i = 0; i < COUNT(structures); i++)
		if (!strcmp(p->type, structures[i].type)) {
			memset(at, 0, 256);
			return fill_structure(f, structures[i].fields, at,
					      random_below(3) ? GOOD
							      : (enum class)random_below(CLASSES));
		}
	if (!strcmp(p->name, "image") || !strcmp(p->name, "data")) {
		memcpy(at, image, sizeof(image));
		return 0;
	}
	if (has(p->name, "ount") || has(p->name, "sizes") || has(p->name, "_of")) {
		for (unsigned int i = 0; i < 64; i++)
			memcpy(at + i * p->bytes, &(uint64_t){ has(p->name, "_of") ? 0 : 8 },
			       p->bytes);
		return 0;
	}
	if (!p->is_const && strcmp(p->name, "dsts") && strcmp(p->name, "srcs") &&
	    strcmp(p->name, "ptrs"))
		return 0;
	memset(at, 0, 64);
	o = objects_pick(p->type, true, false);
	for (unsigned int i = 0; i < 2 && o; i++)
		memcpy(at + 8 * i, &o->value, 8);
	return 0;
}

static void *nested_slot(void)
{
	unsigned int slot = NESTED + nested++ % (LATE - NESTED);
	void *window = window_of(slot);

	memset(window, 0, 256);
	return window;
}

/* One field in four is of the class, the others good. */
static size_t fill_structure(const struct function *f, const char *fields, unsigned char *at,
			     enum class class)
{
	struct param params[40];
	unsigned int n = parse_params(fields, params, COUNT(params));
	size_t offset = 0;

	for (unsigned int i = 0; i < n; i++) {
		struct param *p = &params[i];
		enum class of = random_below(4) ? GOOD : class;
		size_t bytes = p->kind == SCALAR ? p->bytes : 8;
		char ignored[128];
		uint64_t word;

		if (p->kind == SCALAR)
			word = scalar(f, p, of);
		else if (p->kind == HANDLE)
			word = handle(f, p, of, ignored, sizeof(ignored));
		else if (p->kind == CALLBACK)
			word = (uintptr_t)(of == ZERO ? NULL : callback);
		else
			word = of == ZERO ? 0 : (uintptr_t)nested_slot();
		offset = (offset + bytes - 1) / bytes * bytes;
		memcpy(at + offset, &word, bytes);
		offset += bytes;
	}
	return offset;
}

static const char *good_text(const struct function *f, const struct param *p)
{
	static const char *const paths[] = { "/", "/dev/null", "/no/such/file",
					     "/proc/self/status" };
	const struct object *o;

	if (!strcmp(p->name, "path"))
		return paths[random_below(COUNT(paths))];
	if (has(f->name, "GetGlobal"))
		return "cell";
	if (!strcmp(p->name, "symbol")) {
		static char base[NAME_SIZE];

		snprintf(base, sizeof(base), "%s", functions[random_below(functions_n)].name);
		base[strcspn(base, "_")] = '\0';
		return base;
	}
	if (!strcmp(p->name, "name"))
		return "tick";
	o = objects_pick("text", true, false);
	return o ? o->text : "0000:00:00.0";
}

static void text(const struct function *f, const struct param *p, enum class class,
		 struct argument *a, void *window)
{
	const char *value = "";

	switch (class) {
	case ZERO: break;
	case ONE: break;
	case STALE: value = "cuMemAlloc_v2"; break;
	case FOREIGN: value = "GPU-00000000-0000-0000-0000-000000000000"; break;
	case MISALIGNED: value = "%n%s\xff/../"; break;
	case HUGE_SIZE: break;
	case ALL_ONES: value = "-1"; break;
	default: value = good_text(f, p);
	}
	snprintf(window, WINDOW_BYTES, "%s", value);
	if (class == HUGE_SIZE) {
		memset(window, 'x', WINDOW_BYTES - 1);
		((char *)window)[WINDOW_BYTES - 1] = '\0';
	}
	a->word = class == ZERO ? 0 : (uintptr_t)window;
	if (a->word)
		snprintf(a->text, sizeof(a->text), "\"%.100s\"", (char *)window);
}

/* "&name{words}": what is in a structure. */
static void tell_structure(const struct param *p, const unsigned char *at, size_t bytes, char *text,
			   size_t size)
{
	size_t used = (size_t)snprintf(text, size, "&%s{", p->name);

	for (size_t i = 0; i < bytes && used < size; i += 8) {
		char described[128];
		uint64_t word;

		memcpy(&word, at + i, 8);
		describe_word(word, described, sizeof(described));
		used += (size_t)snprintf(text + used, size - used, "%s%s", i ? " " : "", described);
	}
	if (used < size)
		snprintf(text + used, size - used, "}");
}

static void pointer(const struct function *f, const struct param *p, enum class class,
		    struct argument *a, void *window)
{
	bool is_late = !strcmp(p->type, "void") && p->stars == 1 &&
		       (has(f->name, "Async") || has(f->name, "Func") || has(f->name, "Callback"));

	if (!strcmp(p->type, "void") && p->stars == 1 && has(f->name, "Host") && class <= STALE &&
	    class != ZERO && class != ONE) {
		const struct object *o = objects_pick("host", class == GOOD, false);

		if (o) {
			a->word = o->value;
			snprintf(a->text, sizeof(a->text), "host#%u", object_number(o));
			return;
		}
	}
	/* Whether there is anything to write there depends on the moment. */
	if ((class == ONE || class == ALL_ONES) &&
	    (has(f->name, "GetProcessUtilization") || has(f->name, "GetSamples")))
		class = ZERO;
	snprintf(a->text, sizeof(a->text), "&%s", p->name);
	if (is_late) {
		window = window_of(LATE);
	} else {
		size_t bytes = fill(f, p, window);

		if (bytes)
			tell_structure(p, window, bytes, a->text, sizeof(a->text));
		a->window = window;
	}
	a->word = (uintptr_t)window;
	switch (class) {
	case ZERO: a->word = 0; break;
	case ONE: a->word = 8; break;
	case MISALIGNED: a->word++; break;
	case STALE: memset(window, 0, WINDOW_BYTES / 2); break;
	case FOREIGN: memset(window, 0x01, WINDOW_BYTES / 2); break;
	case HUGE_SIZE: memset(window, 0xff, WINDOW_BYTES / 2); break;
	case ALL_ONES: a->word = ~0ull; break;
	default:
		/* No launch of ours has parameters. */
		if (!strcmp(p->name, "extra") || (!strcmp(p->name, "params") && p->stars == 2))
			a->word = 0;
	}
	if (class == ZERO || class == ONE || class == ALL_ONES)
		snprintf(a->text, sizeof(a->text), "%#llx", (unsigned long long)a->word);
	else if (class != GOOD)
		snprintf(a->text, sizeof(a->text), "&%s(%d)", p->name, class);
}

void argument_make(const struct function *f, unsigned int i, enum class class, struct argument *a)
{
	const struct param *p = &f->params[i];
	void *window = window_of(i);

	memset(a, 0, sizeof(*a));
	window_fill(window, i);
	if (!i)
		nested = 0;
	switch (p->kind) {
	case SCALAR: a->word = scalar(f, p, class); break;
	case HANDLE: a->word = handle(f, p, class, a->text, sizeof(a->text)); return;
	case CALLBACK:
		a->word = class == ZERO ? 0 : (uintptr_t)callback;
		snprintf(a->text, sizeof(a->text), a->word ? "callback" : "0");
		return;
	case LOCATION: {
		struct param type = { .type = "CUmemLocationType", .bytes = 4 },
			     id = { .name = "id", .bytes = 4 };

		a->word = scalar(f, &type, class) | scalar(f, &id, random_below(2) ? GOOD : class)
							    << 32;
		break;
	}
	case BLOB: memset(a->blob, class == GOOD ? 0 : class, sizeof(a->blob)); break;
	case TEXT: text(f, p, class, a, window); break;
	case POINTER: pointer(f, p, class, a, window); break;
	}
	if (!a->text[0])
		snprintf(a->text, sizeof(a->text), "%#llx", (unsigned long long)a->word);
}
