#include "node/about.h"

#include <string.h>

#include "node/json.h"
#include "node/node.h"
#include "node/tenant.h"

bool about_is_question(const char *message, size_t size)
{
	const char *op = NULL;
	int64_t version = 0;
	if (!size || size > ABOUT_QUESTION_MAX || message[0] != '{')
		return false;
	cleanup_json json_t *question = json_loadb(message, size, JSON_REJECT_DUPLICATES, NULL);
	return question && json_read_int(question, "version", 1, 1, &version, NULL) > 0 &&
	       json_read_string(question, "op", &op, NULL) > 0 && !strcmp(op, "tenant");
}

static json_t *device_to_json(struct tenant *tenant, unsigned device)
{
	const struct tenant_device_terms *d = &tenant->terms.device[device];
	return json_pack("{s:s, s:I, s:I, s:f, s:f}", "uuid", d->card->info.uuid_text,
			 "memory_quota_bytes", (json_int_t)d->promise.quota_bytes,
			 "memory_used_bytes", (json_int_t)tenant_usage(tenant, device).used_bytes,
			 "cores_pct", d->promise.cores_pct, "cores_limit_pct", d->promise.limit_pct);
}

char *about_tenant(struct tenant *tenant)
{
	const struct tenant_terms *t = &tenant->terms;
	json_t *devices = json_array();
	for (unsigned i = 0; i < t->device_count; i++)
		json_array_append_new(devices, device_to_json(tenant, i));
	cleanup_json json_t *about = json_pack("{s:b, s:s, s:s, s:s, s:b, s:i, s:s, s:o}", "ok", 1,
					       "daemon", "allotd " ALLOT_VERSION, "name", t->name,
					       "id", t->id, "paused", t->paused, "processes",
					       (int)tenant->process_count, "on_full",
					       on_full_name(t->on_full), "devices", devices);
	return about ? json_dumps(about, JSON_COMPACT) : NULL;
}
