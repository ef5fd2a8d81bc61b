#include "kube/hami/cordon.h"

#include <stddef.h>
#include <string.h>

bool cordon_has(const char *cordon, const char *uuid)
{
	size_t wanted = strlen(uuid);
	for (const char *at = cordon; at && *at; at += strcspn(at, ",")) {
		at += strspn(at, ", \t");
		size_t length = strcspn(at, ", \t");
		if (length && length == wanted && !memcmp(at, uuid, length))
			return true;
	}
	return false;
}
