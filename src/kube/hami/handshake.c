#include "kube/hami/handshake.h"

#include <stdio.h>
#include <string.h>

#include "kube/util/timestamp.h"

enum handshake handshake_parse(const char *text)
{
	static const char requesting[] = "Requesting", deleted[] = "Deleted";
	if (!text)
		return HANDSHAKE_NONE;
	if (!strncmp(text, requesting, sizeof(requesting) - 1))
		return HANDSHAKE_REQUESTING;
	return strncmp(text, deleted, sizeof(deleted) - 1) ? HANDSHAKE_NONE : HANDSHAKE_DELETED;
}

void handshake_answer(int64_t now_s, char text[HANDSHAKE_MAX])
{
	char time[TIMESTAMP_MAX];
	timestamp_format_plain(now_s, time);
	snprintf(text, HANDSHAKE_MAX, "Reported_%s", time);
}
