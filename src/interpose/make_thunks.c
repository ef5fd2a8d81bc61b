/*
 * Makes thunks.h at build time: the passed functions that are not quiet, with their numbers, and then the quiet ones
 * (thunk.h).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/driver_decisions.h"
#include "driver/driver_quiet.h"
#include "driver/driver_versions.h"
#include "interpose/name.h"

#define LIST_BASE(base) #base,
#define LIST_PASSED(reason, base) #base,
#define LIST_FORM(version, symbol) #symbol,
static const char *const quiet[] = { DRIVER_QUIET(LIST_BASE) };
static const char *const watched[] = { DRIVER_WATCHED(LIST_BASE) };
static const char *const passed[] = { DRIVER_PASSED(LIST_PASSED) };
static const char *const forms[] = { DRIVER_VERSIONS(LIST_FORM) };
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static bool is_in(const char *const *list, size_t count, const char *symbol)
{
	size_t length = name_base_length(symbol);

	for (size_t i = 0; i < count; i++)
		if (strlen(list[i]) == length && memcmp(list[i], symbol, length) == 0)
			return true;
	return false;
}

int main(void)
{
	int count = 0;

	for (size_t i = 0; i < COUNT(watched); i++)
		if (!is_in(passed, COUNT(passed), watched[i]) ||
		    is_in(quiet, COUNT(quiet), watched[i])) {
			fprintf(stderr, "make_thunks: %s: watched, and not passed or quiet\n",
				watched[i]);
			return 1;
		}
	printf("/* Made by make_thunks.c. */\n#define DRIVER_THUNKS(THUNK)");
	for (size_t i = 0; i < COUNT(forms); i++)
		if (is_in(passed, COUNT(passed), forms[i]) && !is_in(quiet, COUNT(quiet), forms[i]))
			printf(" \\\n\tTHUNK(%s, %s, %d)", forms[i],
			       is_in(watched, COUNT(watched), forms[i]) ? "WATCHED" : "USUAL",
			       count++);
	printf("\n#define DRIVER_QUIET_THUNKS(THUNK)");
	for (size_t i = 0; i < COUNT(forms); i++)
		if (is_in(quiet, COUNT(quiet), forms[i]))
			printf(" \\\n\tTHUNK(%s, QUIET, %d)", forms[i], count++);
	printf("\n");
	return 0;
}
