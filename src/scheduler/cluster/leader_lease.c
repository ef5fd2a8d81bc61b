#include "scheduler/cluster/leader_lease.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "kube/util/sanitize.h"
#include "kube/util/timestamp.h"

#define NUMBER_MAX 1000000000

static int read_text(const json_t *object, const char *key, char *to, size_t size, struct error *err)
{
	const json_t *value = json_object_get(object, key);
	const char *text = json_string_value(value);
	if (!value || json_is_null(value))
		return 0;
	if (!text || strlen(text) >= size)
		return error_set(err, EINVAL, "lease: %s: must be a string of less than %zu bytes",
				 key, size);
	strcpy(to, text);
	return 0;
}

static int read_number(const json_t *object, const char *key, unsigned *to, struct error *err)
{
	const json_t *value = json_object_get(object, key);
	if (!value || json_is_null(value))
		return 0;
	json_int_t number = json_integer_value(value);
	if (!json_is_integer(value) || number < 0 || number > NUMBER_MAX)
		return error_set(err, EINVAL, "lease: %s: must be 0 to %d", key, NUMBER_MAX);
	*to = (unsigned)number;
	return 0;
}

int lease_read(const json_t *object, struct lease *ret, struct error *err)
{
	struct lease lease = { 0 };
	const json_t *spec = json_object_get(object, "spec");
	int r = read_text(json_object_get(object, "metadata"), "resourceVersion", lease.version,
			  sizeof(lease.version), err);
	if (r >= 0 && !lease.version[0])
		r = error_set(err, EINVAL, "lease: metadata.resourceVersion: missing");
	if (r >= 0)
		r = read_text(spec, "holderIdentity", lease.holder, sizeof(lease.holder), err);
	if (r >= 0)
		r = read_text(spec, "acquireTime", lease.acquired, sizeof(lease.acquired), err);
	if (r >= 0)
		r = read_text(spec, "renewTime", lease.renewed, sizeof(lease.renewed), err);
	if (r >= 0)
		r = read_number(spec, "leaseDurationSeconds", &lease.duration_s, err);
	if (r >= 0)
		r = read_number(spec, "leaseTransitions", &lease.transitions, err);
	if (r < 0)
		return error_sanitize(err, r);
	*ret = lease;
	return 0;
}

static json_t *spec_of(const struct lease *l)
{
	return json_pack("{s:s,s:i,s:s,s:s,s:i}", "holderIdentity", l->holder,
			 "leaseDurationSeconds", (int)l->duration_s, "acquireTime", l->acquired,
			 "renewTime", l->renewed, "leaseTransitions", (int)l->transitions);
}

char *lease_body(const char *in_namespace, const char *name, const struct lease *lease)
{
	cleanup_json json_t *body = json_pack("{s:s,s:s,s:{s:s,s:s},s:o}", "apiVersion",
					      "coordination.k8s.io/v1", "kind", "Lease", "metadata",
					      "name", name, "namespace", in_namespace, "spec",
					      spec_of(lease));
	return body ? json_dumps(body, JSON_COMPACT) : NULL;
}

char *lease_patch(const struct lease *lease)
{
	cleanup_json json_t *body = json_pack("{s:{s:s},s:o}", "metadata", "resourceVersion",
					      lease->version, "spec", spec_of(lease));
	return body ? json_dumps(body, JSON_COMPACT) : NULL;
}

void lease_format_time(uint64_t ns, char text[LEASE_TIME_MAX])
{
	char seconds[TIMESTAMP_MAX];
	timestamp_format_rfc3339((int64_t)(ns / NSEC_PER_SEC), seconds);
	snprintf(text, LEASE_TIME_MAX, "%.*s.%06uZ", (int)strcspn(seconds, "Z"), seconds,
		 (unsigned)(ns % NSEC_PER_SEC / NSEC_PER_USEC));
}
