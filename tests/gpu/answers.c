/*
 * What the library answers to cuGetProcAddress, against what the driver itself does, which is found
 * in libcuda's symbol table behind the library's back: for every name that our tables have and some
 * that nobody has, versions, flags, before cuInit and after it. Each is asked twice, since the second
 * answer may come from what was kept. They must be the same, but that where the driver hands out a
 * function that the library governs (dlsym gives the program another address for it), the library
 * must hand out that other one.
 *
 *     gpu-answers
 *
 * Prints one line of JSON: how many answers were compared, how many of them are a function, how many
 * differ, the first of those, and in how many the library wrote outputs of a call that failed, where
 * the driver leaves them as they are: no difference, since nobody may look at them. Ends with 1 when
 * any answer differs. A form that only a newer driver has is refused (unknown.h) and differs, unless
 * ALLOT_UNKNOWN=pass.
 */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/driver_decisions.h"
#include "abi/driver_table.h"
#include "abi/driver_versions.h"
#include "library/loader/elf_lookup.h"

#define NAMES_MAX 1024
#define NAME_SIZE 80
#define FORMS_MAX 9 /* the last one is _v9 */
#define SUFFIXES 3
#define SHOWN_MAX 20

#define FIRST_VERSION 1000
#define LAST_VERSION 14000
#define VERSION_STEP 10
static const int odd_versions[] = { 0, 999, 12001, 12999, 13001, 20000, INT_MAX, -1 };
/* The last one tells who keeps 32 bits of them. */
static const cuuint64_t all_flags[] = { 0, 1, 2, 3, 1ULL << 32 };

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

typedef CUresult look_up_v1(const char *, void **, int, cuuint64_t);
typedef CUresult look_up_v2(const char *, void **, int, cuuint64_t,
			    CUdriverProcAddressQueryResult *);

/* The driver's two functions, and what a program gets for them. NULL: of an old driver. */
enum way { OURS, DRIVERS };
static struct {
	look_up_v1 *v1;
	look_up_v2 *v2;
} each_way[2];

static struct elf_object driver;
static void *library;

static void fail(const char *what)
{
	fprintf(stderr, "gpu-answers: %s\n", what);
	exit(2);
}

/* ---- names ---- */

/* A form of a name that this driver has: another address in the program is that of a hook. */
struct form {
	void *drivers, *ours;
};

static struct name {
	char text[NAME_SIZE];
	struct form forms[FORMS_MAX * SUFFIXES];
	size_t forms_count;
} names[NAMES_MAX];
static size_t names_count, hooks_count;

static void add_name(const char *name, size_t length)
{
	for (size_t i = 0; i < names_count; i++)
		if (!strncmp(names[i].text, name, length) && !names[i].text[length])
			return;
	if (names_count == NAMES_MAX || length >= NAME_SIZE)
		fail("more or longer names than there is room for");
	memcpy(names[names_count++].text, name, length);
}

/* Forms are marked by what follows an underscore: no base has one. */
static void add_base(const char *symbol)
{
	add_name(symbol, strcspn(symbol, "_"));
}

static void find_names(void)
{
	static const char *const unknown[] = {
		"",
		"c",
		"cu",
		"cuMemAllo",
		"cuMemAllocated",
		"cumemalloc",
		"cuMemAlloc_v2",
		"cuMemAlloc_v9",
		"cuMemcpy_ptds",
		"cuLaunchKernel_ptsz",
		"cuNoSuchFunction",
		"nvmlInit",
		"cuNoFunctionThatAnyoneHasEverHeardOfWithANameThatIsLongerThanAllOthers",
	};
#define ADD_HOOK(symbol, hook, params, args) add_base(#symbol);
#define ADD_WORK(symbol, streams, params, args, ...) add_base(#symbol);
#define ADD_CALL(symbol, params) add_base(#symbol);
#define ADD_REASON(reason, base) add_base(#base);
#define ADD_VERSION(version, symbol) add_base(#symbol);
	DRIVER_TABLE(ADD_HOOK, ADD_WORK)
	DRIVER_CALLS(ADD_CALL)
	DRIVER_REFUSED(ADD_REASON)
	DRIVER_PASSED(ADD_REASON)
	DRIVER_VERSIONS(ADD_VERSION)
	for (size_t i = 0; i < COUNT(unknown); i++)
		add_name(unknown[i], strlen(unknown[i]));
}

/* ---- functions that the library governs ---- */

static void add_form(struct name *name, const char *symbol)
{
	struct form form = { .drivers = elf_symbol(&driver, symbol) };

	if (!form.drivers)
		return;
	form.ours = dlsym(library, symbol);
	hooks_count += form.ours != form.drivers;
	name->forms[name->forms_count++] = form;
}

static void find_forms(struct name *name)
{
	static const char *const suffixes[SUFFIXES] = { "", "_ptsz", "_ptds" };
	char mark[16] = "", symbol[NAME_SIZE + 16];

	if (strchr(name->text, '_'))
		return;
	for (int revision = 1; revision <= FORMS_MAX; revision++) {
		if (revision > 1)
			snprintf(mark, sizeof(mark), "_v%d", revision);
		for (size_t i = 0; i < SUFFIXES; i++) {
			snprintf(symbol, sizeof(symbol), "%.*s%s%s", NAME_SIZE - 1, name->text,
				 mark, suffixes[i]);
			add_form(name, symbol);
		}
	}
}

/*
 * What the library must hand out where the driver hands out `drivers`. Functions that do the same may
 * share an address: forms of this name alone are looked at, and of these any is right (`said`, if it
 * is one of them).
 */
static void *expected(const struct name *name, void *drivers, void *said)
{
	void *first = NULL;

	for (size_t i = 0; i < name->forms_count; i++) {
		const struct form *form = &name->forms[i];
		if (form->drivers != drivers)
			continue;
		if (form->ours == said)
			return said;
		first = first ? first : form->ours;
	}
	return first ? first : drivers;
}

/* ---- comparing ---- */

struct question {
	const struct name *name;
	int version;
	cuuint64_t flags;
	bool is_v2;
};

struct answer {
	CUresult result;
	CUdriverProcAddressQueryResult status;
	void *pfn;
};

static char left; /* its address is that of no function: an output that was left as it was */
#define LEFT_STATUS ((CUdriverProcAddressQueryResult)77)

static struct {
	unsigned long long compared, found, differ, written;
} counts;

static struct answer ask(enum way way, const struct question *q)
{
	struct answer a = { .pfn = &left, .status = LEFT_STATUS };

	if (q->is_v2)
		a.result = each_way[way].v2(q->name->text, &a.pfn, q->version, q->flags, &a.status);
	else
		a.result = each_way[way].v1(q->name->text, &a.pfn, q->version, q->flags);
	return a;
}

static void print_pfn(const char *key, void *pfn)
{
	Dl_info info;

	printf(", \"%s\": ", key);
	if (!pfn)
		printf("null");
	else if (pfn == &left)
		printf("\"left as it was\"");
	else if (dladdr(pfn, &info) && info.dli_sname)
		printf("\"%s of %s\"", info.dli_sname, info.dli_fname);
	else
		printf("\"%p\"", pfn);
}

static void show(const struct question *q, int time, const struct answer *driver_said,
		 const struct answer *said)
{
	printf("%s{\"function\": \"cuGetProcAddress%s\", \"name\": \"%s\", \"version\": %d, "
	       "\"flags\": %llu, \"time\": %d, \"driver\": %d, \"ours\": %d, "
	       "\"driver_status\": %d, \"our_status\": %d",
	       counts.differ > 1 ? ", " : "", q->is_v2 ? "_v2" : "", q->name->text, q->version,
	       (unsigned long long)q->flags, time, (int)driver_said->result, (int)said->result,
	       (int)driver_said->status, (int)said->status);
	print_pfn("expected", expected(q->name, driver_said->pfn, said->pfn));
	print_pfn("our_pfn", said->pfn);
	printf("}");
}

static void compare(const struct question *q)
{
	struct answer driver_said = ask(DRIVERS, q);

	for (int time = 1; time <= 2; time++) {
		struct answer said = ask(OURS, q);
		void *pfn = expected(q->name, driver_said.pfn, said.pfn);
		bool is_same = said.result == driver_said.result;

		counts.compared++;
		counts.found += driver_said.result == CUDA_SUCCESS && driver_said.pfn;
		if (said.pfn == pfn && said.status == driver_said.status && is_same)
			continue;
		if (is_same && driver_said.pfn == &left && driver_said.status == LEFT_STATUS) {
			counts.written++;
			continue;
		}
		if (++counts.differ <= SHOWN_MAX)
			show(q, time, &driver_said, &said);
	}
}

/* Each version with all flags, each of them by both functions. */
static void compare_version(const struct name *name, int version)
{
	for (size_t i = 0; i < COUNT(all_flags); i++) {
		struct question q = { name, version, all_flags[i], false };

		if (each_way[DRIVERS].v1)
			compare(&q);
		q.is_v2 = true;
		if (each_way[DRIVERS].v2)
			compare(&q);
	}
}

static void compare_all(void)
{
	for (size_t i = 0; i < names_count; i++) {
		for (int v = FIRST_VERSION; v <= LAST_VERSION; v += VERSION_STEP)
			compare_version(&names[i], v);
		for (size_t o = 0; o < COUNT(odd_versions); o++)
			compare_version(&names[i], odd_versions[o]);
	}
}

static void open_driver(void)
{
	library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!library || !elf_find_object("libcuda.so.1", &driver))
		fail("no libcuda.so.1");
	for (enum way way = OURS; way <= DRIVERS; way++) {
		static const char *const symbols[] = { "cuGetProcAddress", "cuGetProcAddress_v2" };
		void *found[2];
		for (int i = 0; i < 2; i++)
			found[i] = way == OURS ? dlsym(library, symbols[i])
					       : elf_symbol(&driver, symbols[i]);
		memcpy(&each_way[way].v1, &found[0], sizeof(found[0]));
		memcpy(&each_way[way].v2, &found[1], sizeof(found[1]));
	}
	if (!each_way[DRIVERS].v1 && !each_way[DRIVERS].v2)
		fail("this driver has no cuGetProcAddress");
}

int main(void)
{
	CUresult (*init)(unsigned int);
	void *address;

	open_driver();
	find_names();
	for (size_t i = 0; i < names_count; i++)
		find_forms(&names[i]);
	if (!hooks_count)
		fail("nothing is interposed: it is no tenant's");
	printf("{\"first\": [");
	compare_all();
	address = dlsym(library, "cuInit");
	memcpy(&init, &address, sizeof(address));
	if (init(0) != CUDA_SUCCESS)
		fail("cuInit does not succeed");
	compare_all();
	printf("], \"names\": %zu, \"governed\": %zu, \"compared\": %llu, \"found\": %llu, "
	       "\"differ\": %llu, \"written_though_failed\": %llu}\n",
	       names_count, hooks_count, counts.compared, counts.found, counts.differ,
	       counts.written);
	return counts.differ || counts.written;
}
