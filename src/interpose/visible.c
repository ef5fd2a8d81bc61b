#include "interpose/visible.h"

#include <string.h>
#include <unistd.h>

#include "interpose/guest.h"
#include "interpose/nvml_card.h"

#define VARIABLE "CUDA_VISIBLE_DEVICES="
#define MAX_ENTRIES (REGION_MAX_DEVICES + 1) /* with one more than there are, one is named twice */

/* Stays where it is: a thread may hold what getenv() returned. */
static char entry[sizeof(VARIABLE) + MAX_ENTRIES * NVML_DEVICE_UUID_BUFFER_SIZE];
static struct sys_lock busy;

static char **find(const char *prefix, size_t length)
{
	for (char **e = environ; e && *e; e++)
		if (strncmp(*e, prefix, length) == 0)
			return e;
	return NULL;
}

/*
 * A number as strtol reads it, which is what the driver takes of an entry; strtol itself is another
 * symbol in each glibc. False: none. *ret is negative, or too large, for what can be no device's.
 */
static bool read_number(const char **at, int *ret)
{
	const char *c = *at + strspn(*at, " \t");
	bool is_negative = *c == '-';
	int value = 0;

	if (*c == '-' || *c == '+')
		c++;
	if (*c < '0' || *c > '9')
		return false;
	for (; *c >= '0' && *c <= '9'; c++)
		if (value < REGION_MAX_DEVICES)
			value = value * 10 + (*c - '0');
	*at = c;
	*ret = is_negative && value ? -1 : value;
	return true;
}

/*
 * The first entry that is no device's ends the list. (The driver goes on to say so itself of a list that
 * is empty, or names one twice.)
 */
static void write_entry(const char *numbers)
{
	size_t at = sizeof(VARIABLE) - 1;
	const char *c = numbers;
	int card;

	memcpy(entry, VARIABLE, sizeof(VARIABLE));
	for (int n = 0; n < MAX_ENTRIES; n++) {
		if (!read_number(&c, &card) || card < 0 || card >= nvml_card_count())
			break;
		if (n)
			entry[at++] = ',';
		nvml_format_uuid(entry + at, nvml_uuid_prefix(card),
				 guest_control_device(card)->uuid);
		at += strlen(entry + at);
		c += strcspn(c, ",");
		if (*c++ == '\0')
			break;
	}
}

char *visible_begin(void)
{
	char **place = find(VARIABLE, sizeof(VARIABLE) - 1);
	char *old = place ? *place : NULL;
	const char *value = old ? old + sizeof(VARIABLE) - 1 : NULL, *c = value;
	int number;

	if (!value || !read_number(&c, &number) || !sys_trylock(&busy))
		return NULL;
	write_entry(value);
	*place = entry;
	return old;
}

/* Looks for it again: another thread may have moved the list by setting a variable. */
void visible_end(char *old)
{
	if (!old)
		return;
	for (char **e = environ; e && *e; e++)
		if (*e == entry)
			*e = old;
	sys_unlock(&busy);
}
