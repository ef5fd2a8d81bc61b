#include "cli/run/waiting.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cli/format.h"

#define FIRST_POLL_NS (1 * NSEC_PER_SEC) /* a shorter wait need not be reported */
#define POLL_INTERVAL_NS (2 * NSEC_PER_SEC)

void waiting_begin(struct waiting *w, bool is_watched)
{
	*w = (struct waiting){ .is_watched = is_watched, .next_ns = clock_now_ns() + FIRST_POLL_NS };
}

int waiting_timeout_ms(const struct waiting *w)
{
	uint64_t now_ns = clock_now_ns();

	if (!w->is_watched)
		return -1;
	return now_ns < w->next_ns ? (int)((w->next_ns - now_ns) / NSEC_PER_MSEC) + 1 : 0;
}

bool waiting_describe(const json_t *tenant, char *text, size_t size)
{
	const json_t *wait = json_object_get(tenant, "memory_wait");
	const json_t *devices = json_object_get(tenant, "devices");
	uint64_t bytes = 0;
	char amount[FORMAT_MAX];

	if (!json_is_object(wait))
		return false;
	for (size_t i = 0; i < json_array_size(devices); i++) {
		const json_t *device = json_array_get(devices, i);
		const json_t *reserve = json_object_get(device, "memory_reserve_bytes");
		bytes += (uint64_t)json_integer_value(reserve);
	}
	format_bytes(bytes, amount);
	snprintf(text, size, "waiting for %s of GPU memory (place %lld in the queue)", amount,
		 (long long)json_integer_value(json_object_get(wait, "place")));
	return true;
}

static const json_t *find_tenant(const json_t *list, const char *id)
{
	const json_t *tenants = json_object_get(list, "tenants");

	for (size_t i = 0; i < json_array_size(tenants); i++) {
		const json_t *tenant = json_array_get(tenants, i);
		const char *own = json_string_value(json_object_get(tenant, "id"));

		if (own && strcmp(own, id) == 0)
			return tenant;
	}
	return NULL;
}

void waiting_poll(struct waiting *w, struct client *client, const char *id)
{
	cleanup_json json_t *list = NULL;
	char text[128];

	if (!w->is_watched || clock_now_ns() < w->next_ns)
		return;
	w->next_ns = clock_now_ns() + POLL_INTERVAL_NS;
	if (!id || client_request(client, "list", json_object(), &list, NULL) < 0 ||
	    !waiting_describe(find_tenant(list, id), text, sizeof(text)))
		return;
	fprintf(stderr, "allot: run: %s; allot ps shows the queue\n", text);
	w->is_watched = false;
}
