#include "daemon/export/page/web_change.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "daemon/api/dispatch.h"
#include "daemon/api/session.h"

/* The uid of the page's requests. No tenant belongs to this uid: instead, is_admin gives them the rights of group "allot". */
#define NOBODY ((uid_t)-1)

static unsigned status_of(int code)
{
	switch (code) {
	case 0: return 200;
	case ENOENT: return 404;
	case EPERM: return 403;
	case EBUSY:
	case ENOSPC:
	case EEXIST: return 409;
	case ENOMEM:
	case EIO: return 500;
	default: return 400;
	}
}

/*
 * Makes a request line of the control protocol from an HTTP body. Returns a body that is no JSON object unchanged:
 * dispatch_request() refuses it. NULL if out of memory.
 */
static char *make_line(const char *operation, const char *body, size_t size)
{
	json_error_t where;
	cleanup_json json_t *request = json_loadb(body ? body : "", body ? size : 0,
						  JSON_REJECT_DUPLICATES, &where);
	if (!json_is_object(request))
		return strndup(body ? body : "", size);
	if (json_object_set_new(request, "version", json_integer(1)) < 0 ||
	    json_object_set_new(request, "op", json_string(operation)) < 0)
		return NULL;
	return json_dumps(request, JSON_COMPACT);
}

static int http_status(const char *reply)
{
	cleanup_json json_t *json = json_loads(reply, 0, NULL);
	return json_is_true(json_object_get(json, "ok"))
		       ? 0
		       : (int)json_integer_value(json_object_get(json, "errno"));
}

char *change_make(struct node *node, const char *operation, const char *body, size_t size,
		  unsigned *ret_status)
{
	struct session session = {
		.node = node, .pid = 0, .uid = NOBODY, .is_admin = true, .is_page = true
	};
	cleanup_free char *line = make_line(operation, body, size);
	char *reply = line ? dispatch_request(&session, line, strlen(line)) : NULL;
	if (!reply)
		return NULL;
	int code = http_status(reply);
	*ret_status = status_of(code);
	if (!code)
		log_info("page: a user of the web page made a change: %s: %.200s", operation, line);
	return reply;
}
