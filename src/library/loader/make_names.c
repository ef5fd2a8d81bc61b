/*
 * Generates names.h at build time: a table of all names for which a program can ask cuGetProcAddress. By a name's hash, the
 * table tells whether the function is hooked, and its forms, each with the CUDA version that introduced it. So a process
 * compares no strings, and fills in or relocates no table at load. Functions that are not hooked are numbered for forward.c.
 */
#include <stdio.h>
#include <stdlib.h>

#include "abi/driver_decisions.h"
#include "abi/driver_table.h"
#include "abi/driver_versions.h"
#include "library/loader/name.h"

#define NAMES_MAX 4095 /* the largest number in the low bits of a names_table entry */
#define FORMS_MAX 2048

static struct name {
	uint64_t hash;
	const char *text;
	size_t length;
} names[NAMES_MAX];
static size_t names_count;

/* Sorted by base name. A name's legacy forms come first, then its per-thread-stream forms; within these, the newest first. */
static struct form {
	const char *symbol;
	int since;
	size_t name;
	bool is_twin; /* _ptsz or _ptds */
	/* The index in known_passed[] of a function that is not hooked. */
	int forward;
} forms[FORMS_MAX];
static size_t forms_count;

#define ROW_HOOK(symbol, hook, params, args) #symbol,
#define ROW_WORK(symbol, streams, params, args, ...) #symbol,
static const char *const rows[] = { DRIVER_TABLE(ROW_HOOK, ROW_WORK) };
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static void fail(const char *why, const char *which)
{
	fprintf(stderr, "make_names: %s: %s\n", which, why);
	exit(1);
}

static size_t add(const char *symbol, size_t length)
{
	uint64_t hash = name_hash(symbol, length);

	for (size_t i = 0; i < names_count; i++) {
		if (names[i].length == length && memcmp(names[i].text, symbol, length) == 0)
			return i;
		if (names[i].hash >> 12 == hash >> 12)
			fail("its hash equals that of another name: change name_hash() in library/loader/name.h",
			     symbol);
	}
	if (names_count == NAMES_MAX)
		fail("too many names", symbol);
	names[names_count] = (struct name){ hash, symbol, length };
	return names_count++;
}

#define LIST_PASSED(reason, base) #base,
static const char *const passed_bases[] = { DRIVER_PASSED(LIST_PASSED) };
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void add_passed(void)
{
	for (size_t i = 0; i < COUNT(passed_bases); i++)
		add(passed_bases[i], strlen(passed_bases[i]));
}

static void add_hooked(void)
{
	for (size_t i = 0; i < ROWS; i++)
		add(rows[i], name_base_length(rows[i]));
}

static void add_form(int since, const char *symbol)
{
	size_t length = strlen(symbol), count = names_count;

	if (forms_count == FORMS_MAX)
		fail("too many forms", symbol);
	if (since % 10)
		fail("its version in driver_versions.h must be a multiple of 10", symbol);
	size_t name = add(symbol, name_base_length(symbol));
	if (names_count > count)
		fail("is in driver_versions.h, but not in driver_decisions.h: add its base name "
		     "there",
		     symbol);
	forms[forms_count++] = (struct form){
		.symbol = symbol,
		.since = since,
		.name = name,
		.is_twin = length > 5 && (strcmp(symbol + length - 5, "_ptsz") == 0 ||
					  strcmp(symbol + length - 5, "_ptds") == 0),
	};
}

static void add_forms(void)
{
#define ADD_FORM(version, symbol) add_form(version, #symbol);
	DRIVER_VERSIONS(ADD_FORM)
}

static int compare_forms(const void *a, const void *b)
{
	const struct form *x = a, *y = b;

	if (x->name != y->name)
		return x->name < y->name ? -1 : 1;
	if (x->is_twin != y->is_twin)
		return x->is_twin ? 1 : -1;
	return y->since - x->since;
}

static int number_forwards(size_t passed)
{
	int count = 0;

	for (size_t i = 0; i < forms_count; i++)
		if (forms[i].name < passed)
			forms[i].forward = count++;
	return count;
}

static int row_of(const struct form *f, size_t passed)
{
	if (f->name < passed)
		return -1 - f->forward;
	for (size_t i = 0; i < ROWS; i++)
		if (strcmp(rows[i], f->symbol) == 0)
			return (int)i;
	fail("has no row in driver_table.h, but another form of it (_vN, _ptsz or _ptds) has one: "
	     "add a row",
	     f->symbol);
	return -1;
}

static void print_table(void)
{
	size_t size = 1;

	while (size * 3 < names_count * 4)
		size *= 2;
	uint64_t *table = calloc(size, sizeof(*table));
	if (!table)
		fail("out of memory", "names_table");
	for (size_t n = 0; n < names_count; n++) {
		size_t i = names[n].hash & (size - 1);
		while (table[i])
			i = (i + 1) & (size - 1);
		table[i] = (names[n].hash & ~(uint64_t)NAMES_MAX) | (n + 1);
	}
	printf("#define NAMES_TABLE_SIZE %zu\n#define NAMES_NUMBER_MASK %dULL\n\n", size, NAMES_MAX);
	printf("/* Low bits: a name's number, counted from 1. Upper bits: from the name's hash. 0: empty. */\n"
	       "static const uint64_t names_table[NAMES_TABLE_SIZE] = {\n");
	for (size_t i = 0; i < size; i++)
		printf("\t0x%016llxULL,\n", (unsigned long long)table[i]);
	printf("};\n\n");
	free(table);
}

static void print_forms(size_t passed)
{
	size_t text = 0;

	printf("static const char names_text[] =\n");
	for (size_t i = 0; i < forms_count; i++)
		printf("\t\"%s\\0\"\n", forms[i].symbol);
	printf("\t\"\";\n\n");
	printf("/* Each name's legacy forms, then its per-thread-stream forms, each group with the newest first. */\n"
	       "static const struct names_form {\n"
	       "\tuint16_t since; /* version / 10 */\n"
	       "\tuint16_t text;  /* in names_text */\n"
	       "\tint16_t row;    /* index in driver_table.h; forward number n has the value -1 - n */\n"
	       "\tuint32_t gnu_hash;\n"
	       "} names_forms[] = {\n");
	for (size_t i = 0; i < forms_count; i++) {
		const struct form *f = &forms[i];
		printf("\t{ %d, %zu, %d, 0x%08xU },\n", f->since / 10, text, row_of(f, passed),
		       (unsigned)name_gnu_hash(f->symbol));
		text += strlen(f->symbol) + 1;
	}
	if (text > UINT16_MAX)
		fail("longer than 65535 bytes: make names_form.text wider than uint16_t",
		     "names_text");
	printf("};\n\n");
}

/* Prints the index of each name's first legacy and first per-thread-stream form. Forms end where the next name's begin. */
static void print_first(void)
{
	size_t f = 0;

	printf("static const struct names_first {\n\tuint16_t form, twin;\n"
	       "} names_first[NAMES_COUNT + 1] = {\n");
	for (size_t n = 0; n < names_count; n++) {
		size_t first = f, twin;
		while (f < forms_count && forms[f].name == n && !forms[f].is_twin)
			f++;
		twin = f;
		while (f < forms_count && forms[f].name == n)
			f++;
		printf("\t{ %zu, %zu },\n", first, twin);
	}
	printf("\t{ %zu, %zu },\n};\n", f, f);
}

static void print_forwards(size_t passed)
{
	printf("\n/* The functions that are not hooked, by their index in known_passed[]. */\n#define "
	       "DRIVER_FORWARDS(FORWARD)");
	for (size_t i = 0; i < forms_count; i++)
		if (forms[i].name < passed)
			printf(" \\\n\tFORWARD(%s, %d)", forms[i].symbol, forms[i].forward);
	printf("\n");
}

int main(void)
{
	add_passed();
	size_t passed = names_count;
	add_hooked();
	add_forms();
	int forwards = number_forwards(passed);
	qsort(forms, forms_count, sizeof(forms[0]), compare_forms);

	printf("/* Made by make_names.c. The first NAMES_PASSED names are not hooked, the others are. "
	       "*/\n"
	       "#define NAMES_PASSED %zu\n#define NAMES_COUNT %zu\n#define NAMES_FORWARDS %d\n",
	       passed, names_count, forwards);
	print_table();
	print_forms(passed);
	print_first();
	print_forwards(passed);
	return 0;
}
