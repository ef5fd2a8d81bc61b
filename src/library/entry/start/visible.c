#include "library/entry/start/visible.h"

#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "library/entry/nvml/nvml_card.h"
#include "library/loader/real.h"
#include "library/state/process_state.h"
#include "library/sys/locks.h"

#define VARIABLE "CUDA_VISIBLE_DEVICES="
/* One more device than a tenant can have. A list of so many contains a duplicate, which the driver must see to report it. */
#define MAX_ENTRIES (REGION_MAX_DEVICES + 1)

/* The variable as the library sets it. Static, because a thread may hold a pointer to it from getenv(). */
static char entry[sizeof(VARIABLE) + MAX_ENTRIES * NVML_DEVICE_UUID_BUFFER_SIZE];
/* The program's entry, which visible_end() restores, or `entry` if there was none. NULL while nothing is changed. */
static char *replaced;

/* For a program without the variable: its environment plus `entry`. Never unmapped, because another thread may read it. */
static char **list, **list_before;
static size_t list_room;

static char **find(const char *prefix, size_t length)
{
	for (char **e = environ; e && *e; e++)
		if (strncmp(*e, prefix, length) == 0)
			return e;
	return NULL;
}

/* Like strtol(), which the driver uses. Built with a new glibc, strtol() itself needs a symbol that older ones lack. */
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

static size_t append_uuid(size_t at, int card)
{
	if (at >= sizeof(VARIABLE))
		entry[at++] = ',';
	nvml_format_uuid(entry + at, nvml_uuid_prefix(card), process_control_device(card)->uuid);
	return at + strlen(entry + at);
}

/*
 * Writes into `entry` the UUIDs of the devices with these numbers, up to the first number without a device. Does not check for
 * an empty list or for duplicates: the driver reports these errors to the program.
 */
static void write_numbers(const char *numbers)
{
	size_t at = sizeof(VARIABLE) - 1;
	const char *c = numbers;
	int card;

	for (int n = 0; n < MAX_ENTRIES; n++) {
		if (!read_number(&c, &card) || card < 0 || card >= nvml_card_count())
			break;
		at = append_uuid(at, card);
		c += strcspn(c, ",");
		if (*c++ == '\0')
			break;
	}
}

/* True for the UUID, or its beginning, of a device of the tenant. If several match, the driver decides. */
static bool is_own_uuid(const char *word, size_t length)
{
	char text[NVML_DEVICE_UUID_BUFFER_SIZE];

	for (int i = 0; i < nvml_card_count(); i++) {
		nvml_format_uuid(text, nvml_uuid_prefix(i), process_control_device(i)->uuid);
		if (length <= strlen(text) && strncasecmp(text, word, length) == 0)
			return true;
	}
	return false;
}

/* Copies the program's UUIDs into `entry`, up to the first that is not the tenant's. */
static void write_uuids(const char *uuids)
{
	const char *c = uuids;
	size_t length = 0;

	for (int n = 0; n < MAX_ENTRIES; n++) {
		size_t blanks = strspn(c, " \t"), word = strcspn(c + blanks, ", \t");
		if (!word || !is_own_uuid(c + blanks, word))
			break;
		c += blanks + word;
		c += strspn(c, " \t");
		length = (size_t)(c - uuids);
		if (*c++ != ',')
			break;
	}
	if (length >= sizeof(entry) - sizeof(VARIABLE))
		length = 0;
	memcpy(entry + sizeof(VARIABLE) - 1, uuids, length);
	entry[sizeof(VARIABLE) - 1 + length] = '\0';
}

static void write_all(void)
{
	size_t at = sizeof(VARIABLE) - 1;

	for (int i = 0; i < nvml_card_count(); i++)
		at = append_uuid(at, i);
}

static bool add_entry(void)
{
	size_t count = 0;

	while (environ && environ[count])
		count++;
	if (count + 2 > list_room) {
		size_t room = 2 * (count + 2);
		void *more = sys_map(NULL, 0, room * sizeof(*list));
		if (!more)
			return false;
		list = more;
		list_room = room;
	}
	for (size_t i = 0; i < count; i++)
		list[i] = environ[i];
	list[count] = entry;
	list[count + 1] = NULL;
	list_before = environ;
	environ = list;
	return true;
}

/* `environ` is no longer `list` if another thread has set a variable meanwhile. */
static void remove_entry(void)
{
	if (environ == list) {
		environ = list_before;
		return;
	}
	char **to = environ;
	for (char **e = environ; e && *e; e++)
		if (*e != entry)
			*to++ = *e;
	if (to)
		*to = NULL;
}

static bool is_started(void)
{
	CUcontext context;

	return real.cuCtxGetCurrent && real.cuCtxGetCurrent(&context) != CUDA_ERROR_NOT_INITIALIZED;
}

/* `entry` may have moved in the environment, because another thread set a variable. */
static void put_back(void)
{
	if (replaced == entry)
		remove_entry();
	for (char **e = environ; e && *e; e++)
		if (*e == entry)
			*e = replaced;
	replaced = NULL;
}

bool visible_begin(void)
{
	if (is_started() || !nvml_card_count() || !sys_trylock(&locks.visible))
		return false;
	/* In a forked child: undo a change that a thread of the parent had begun and not ended. */
	if (replaced)
		put_back();
	char **place = find(VARIABLE, sizeof(VARIABLE) - 1);
	const char *value = place ? *place + sizeof(VARIABLE) - 1 : NULL, *c = value;
	int number;

	memcpy(entry, VARIABLE, sizeof(VARIABLE));
	if (!value)
		write_all();
	else if (read_number(&c, &number))
		write_numbers(value);
	else
		write_uuids(value);
	replaced = place ? *place : entry;
	if (place)
		*place = entry;
	else if (!add_entry())
		replaced = NULL;
	if (replaced)
		return true;
	sys_unlock(&locks.visible);
	return false;
}

void visible_end(bool is_changed)
{
	if (!is_changed)
		return;
	put_back();
	sys_unlock(&locks.visible);
}
