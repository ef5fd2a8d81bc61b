/*
 * Makes names.h at build time: the bases of all functions of the driver's that are known, by hash
 * (answers.c). With them in place, what the library must do when a function is looked up is known without
 * a string that is compared, and no process fills a table.
 */
#include <stdio.h>
#include <stdlib.h>

#include "driver/driver_decisions.h"
#include "driver/driver_table.h"
#include "interpose/name.h"

#define MOST 4095 /* what an entry's low bits can number */

static struct {
	uint64_t hash;
	const char *name;
	size_t length;
} names[MOST];
static size_t count;

static void add(const char *symbol, size_t length)
{
	uint64_t hash = name_hash(symbol, length);

	for (size_t i = 0; i < count; i++) {
		if (names[i].length == length && memcmp(names[i].name, symbol, length) == 0)
			return;
		if (names[i].hash >> 12 == hash >> 12) {
			fprintf(stderr, "make_names: %s and %s have the same hash: change it\n",
				names[i].name, symbol);
			exit(1);
		}
	}
	if (count == MOST) {
		fprintf(stderr, "make_names: more than %d names\n", MOST);
		exit(1);
	}
	names[count].hash = hash;
	names[count].name = symbol;
	names[count++].length = length;
}

static void add_passed(void)
{
#define ADD_PASSED(reason, base) add(#base, strlen(#base));
	DRIVER_PASSED(ADD_PASSED)
}

static void add_governed(void)
{
#define ADD_HOOK(symbol, hook, params, args) add(#symbol, name_base_length(#symbol));
#define ADD_WORK(symbol, streams, params, args, ...) ADD_HOOK(symbol, , , )
	DRIVER_TABLE(ADD_HOOK, ADD_WORK)
}

int main(void)
{
	size_t passed, places = 1;

	add_passed();
	passed = count;
	add_governed();
	while (places * 3 < count * 4)
		places *= 2;

	uint64_t *place = calloc(places, sizeof(*place));
	if (!place)
		return 1;
	for (size_t n = 0; n < count; n++) {
		size_t i = names[n].hash & (places - 1);
		while (place[i])
			i = (i + 1) & (places - 1);
		place[i] = (names[n].hash & ~(uint64_t)MOST) | (n + 1);
	}

	printf("/* Made by make_names.c. The first %zu are passed, the others governed. */\n"
	       "#define NAMES_PASSED %zu\n#define NAMES_COUNT %zu\n#define NAMES_PLACES %zu\n"
	       "#define NAMES_NUMBER_MASK %dULL\n\n"
	       "/* The upper bits of a base name's hash above its number, which is at least 1; 0: "
	       "empty. */\n"
	       "static const uint64_t names_places[NAMES_PLACES] = {\n",
	       passed, passed, count, places, MOST);
	for (size_t i = 0; i < places; i++)
		printf("\t0x%016llxULL,\n", (unsigned long long)place[i]);
	printf("};\n");
	free(place);
	return 0;
}
