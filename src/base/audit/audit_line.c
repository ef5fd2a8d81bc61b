#include "base/audit/audit_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"

#define AUDIT_VERSION 1

/* RFC 3339 in UTC. */
static int add_time(json_t *line)
{
	struct timespec now;
	struct tm tm;
	char text[40];
	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	size_t n = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text + n, sizeof(text) - n, ".%03uZ",
		 (unsigned)((uint64_t)now.tv_nsec / NSEC_PER_MSEC));
	return json_object_set_new(line, "time", json_string(text));
}

static int append(struct audit_file *file, const char *event, json_t *by, json_t *what)
{
	json_t *line = json_object();
	int failed = json_object_set_new(line, "version", json_integer(AUDIT_VERSION));
	failed |= add_time(line);
	failed |= json_object_set_new(line, "event", json_string(event));
	failed |= json_object_set_new(line, "by", by);
	failed |= json_object_update(line, what);
	/* If memory ran out, the line is lost: an incomplete line could be taken for a complete one. */
	char *text = failed ? NULL : json_dumps(line, JSON_COMPACT);
	int r = audit_file_append(file, text);
	free(text);
	json_decref(what);
	json_decref(line);
	return r;
}

static void report_lost(struct audit_file *file, const char *own)
{
	uint64_t unreported = file->unreported, lost = file->lost;
	if (append(file, "lost", json_pack("{s:s}", "kind", own),
		   json_pack("{s:I}", "lines", (json_int_t)unreported)) >= 0) {
		file->unreported = 0;
		return;
	}
	/* Appending the report failed, which counted the report itself as lost. Restore the earlier counts. */
	file->unreported = unreported;
	file->lost = lost;
}

void audit_line_write(struct audit_file *file, const char *own, const char *event, json_t *by,
		      json_t *what)
{
	if (file->unreported)
		report_lost(file, own);
	append(file, event, by, what);
}
