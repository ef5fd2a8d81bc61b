#include "kube/hami/node_lock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "kube/hami/annotations.h"
#include "kube/util/sanitize.h"
#include "kube/util/timestamp.h"

static int parse_name(const char *what, const char *from, size_t size, char to[KUBE_NAME_MAX],
		      struct error *err)
{
	if (!size || size >= KUBE_NAME_MAX)
		return error_set(err, EINVAL, KUBE_NODE_LOCK ": %s '%.*s': must be 1 to %d bytes",
				 what, size > 40 ? 40 : (int)size, from, KUBE_NAME_MAX - 1);
	memcpy(to, from, size);
	to[size] = '\0';
	return 0;
}

int node_lock_parse(const char *text, struct node_lock *ret, struct error *err)
{
	struct node_lock lock = { 0 };
	char time[64];
	const char *space = strchr(text, ',');
	const char *pod = space ? strchr(space + 1, ',') : NULL;
	if ((space && !pod) || (pod && strchr(pod + 1, ',')))
		return error_sanitize(
			err, error_set(err, EINVAL,
				       KUBE_NODE_LOCK
				       ": '%.80s': must be TIME,NAMESPACE,POD or a time alone",
				       text));
	size_t length = space ? (size_t)(space - text) : strlen(text);
	snprintf(time, sizeof(time), "%.*s", length > 63 ? 63 : (int)length, text);
	int r = timestamp_parse_rfc3339(time, &lock.since_s, err);
	if (r < 0)
		return error_sanitize(err, error_add(err, r, KUBE_NODE_LOCK));
	if (pod) {
		r = parse_name("namespace", space + 1, (size_t)(pod - space - 1),
			       lock.pod_namespace, err);
		if (r >= 0)
			r = parse_name("pod", pod + 1, strlen(pod + 1), lock.pod, err);
		if (r < 0)
			return error_sanitize(err, r);
	}
	*ret = lock;
	return 0;
}

void node_lock_format(const struct node_lock *lock, char text[NODE_LOCK_MAX])
{
	char time[TIMESTAMP_MAX];
	timestamp_format_rfc3339(lock->since_s, time);
	if (lock->pod[0])
		snprintf(text, NODE_LOCK_MAX, "%s,%s,%s", time, lock->pod_namespace, lock->pod);
	else
		snprintf(text, NODE_LOCK_MAX, "%s", time);
}

bool node_lock_is_expired(const struct node_lock *lock, int64_t now_s, int64_t expiry_s)
{
	return now_s - lock->since_s > expiry_s;
}

bool node_lock_is_of(const struct node_lock *lock, const char *pod_namespace, const char *pod)
{
	return !strcmp(lock->pod_namespace, pod_namespace) && !strcmp(lock->pod, pod);
}
