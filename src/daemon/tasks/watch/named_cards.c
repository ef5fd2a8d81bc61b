#include "daemon/tasks/watch/named_cards.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define PREFIX 4 /* length of "GPU-" and "MIG-" */

/* Returns the card whose UUID begins with `entry`; negative if none or several do. */
static int by_uuid(const char *entry, size_t length, const char *const *uuid, unsigned count,
		   uint64_t visible)
{
	int found = -1;
	for (unsigned i = 0; i < count; i++)
		if (visible >> i & 1 && !strncasecmp(uuid[i], entry, length)) {
			if (found >= 0)
				return -1;
			found = (int)i;
		}
	return found;
}

static int by_number(const char *entry, size_t length, unsigned count, uint64_t visible)
{
	char *end;
	long number = strtol(entry, &end, 10);
	if (end == entry || end != entry + length || number < 0)
		return -1;
	for (unsigned i = 0; i < count; i++)
		if (visible >> i & 1 && number-- == 0)
			return (int)i;
	return -1;
}

uint64_t named_cards(const char *list, const char *const *uuid, unsigned count, uint64_t visible,
		     bool has_order)
{
	uint64_t named = 0;
	for (const char *c = list; *c;) {
		c += strspn(c, " ");
		size_t length = strcspn(c, ", ");
		bool is_uuid = length > PREFIX &&
			       (!strncasecmp(c, "GPU-", PREFIX) || !strncasecmp(c, "MIG-", PREFIX));
		if (!is_uuid && !has_order)
			return visible;
		int card = is_uuid ? by_uuid(c, length, uuid, count, visible)
				   : by_number(c, length, count, visible);
		if (card < 0)
			break;
		named |= UINT64_C(1) << card;
		c += length;
		c += strspn(c, " ");
		if (*c != ',')
			break;
		c++;
	}
	return named ? named : visible;
}

const char *named_in_environment(const char *environment, int length, const char *name)
{
	for (int at = 0; at < length; at += (int)strlen(environment + at) + 1)
		if (!strncmp(environment + at, name, strlen(name)))
			return environment + at + strlen(name);
	return NULL;
}
