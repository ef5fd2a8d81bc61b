#include "cli/trace/tracks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STATE_LINE 1
#define SORT_OF_TENANT 0
#define SORT_OF_CARDS 1

void tracks_begin(struct tracks *t, struct out *out, const char *tenant, uint64_t first_ns)
{
	char name[96];

	t->out = out;
	t->first_ns = t->state_since_ns = first_ns;
	snprintf(t->tenant, sizeof(t->tenant), "%s", tenant);
	snprintf(name, sizeof(name), "tenant %s", tenant);
	out_name(out, "process_name", TRACKS_TENANT_PID, 0, name);
	out_sort_index(out, "process_sort_index", TRACKS_TENANT_PID, 0, SORT_OF_TENANT);
	out_name(out, "thread_name", TRACKS_TENANT_PID, STATE_LINE, "state");
}

static uint64_t since_begin(const struct tracks *t, uint64_t ns)
{
	return ns > t->first_ns ? ns - t->first_ns : 0;
}

static void slice(const struct tracks *t, const char *category, int64_t pid, int64_t line,
		  uint64_t begin_ns, uint64_t end_ns, const char *name)
{
	uint64_t begin = since_begin(t, begin_ns), end = since_begin(t, end_ns);

	out_event(t->out, 'X', category, pid, line, begin, name);
	out_duration(t->out, end > begin ? end - begin : 0);
}

static void write_state(struct tracks *t, uint64_t now_ns)
{
	if (!*t->state)
		return;
	slice(t, "state", TRACKS_TENANT_PID, STATE_LINE, t->state_since_ns, now_ns, t->state);
	out_event_end(t->out);
}

static void note_state(struct tracks *t, const char *state, uint64_t now_ns)
{
	if (!state || !strcmp(state, t->state))
		return;
	write_state(t, now_ns);
	/* The first state is drawn from the begin of the trace, because it began before the first reply. */
	if (*t->state)
		t->state_since_ns = now_ns;
	snprintf(t->state, sizeof(t->state), "%s", state);
}

static void counter(const struct tracks *t, const char *what, unsigned gpu, const char *unit,
		    double value, uint64_t now_ns)
{
	char name[48];

	snprintf(name, sizeof(name), "%s, GPU %u", what, gpu);
	out_event(t->out, 'C', "tenant", TRACKS_TENANT_PID, 0, since_begin(t, now_ns), name);
	out_args(t->out);
	out_real(t->out, unit, value);
	out_event_end(t->out);
}

static void note_figures(struct tracks *t, unsigned i, const json_t *device, uint64_t now_ns)
{
	struct tracks_card *card = &t->card[i];
	uint64_t used = (uint64_t)json_integer_value(json_object_get(device, "memory_used_bytes"));
	double got = json_number_value(json_object_get(device, "got_1s_pct"));

	if (!card->has_figures || used != card->used_bytes)
		counter(t, "memory", t->device[i], "bytes", (double)used, now_ns);
	if (!card->has_figures || got < card->got_pct || got > card->got_pct)
		counter(t, "compute, 1 s", t->device[i], "percent", got, now_ns);
	card->used_bytes = used;
	card->got_pct = got;
	card->has_figures = true;
}

/*
 * Returns the number of the tenant's line in a GPU's track. If the tenant has no line yet, adds one and writes the tenant's
 * name for it into the trace. Negative if the track has TRACKS_TENANTS lines already, or memory runs out.
 */
static int tenant_line(struct tracks *t, unsigned i, const char *tenant)
{
	struct tracks_card *card = &t->card[i];
	unsigned n = 0;

	while (n < card->tenant_count && strcmp(card->tenant[n], tenant) != 0)
		n++;
	if (n < card->tenant_count)
		return (int)n + 1;
	if (n == TRACKS_TENANTS || !(card->tenant[n] = strdup(tenant)))
		return -1;
	card->tenant_count++;
	out_name(t->out, "thread_name", TRACKS_CARD_PID + t->device[i], n + 1, tenant);
	out_sort_index(t->out, "thread_sort_index", TRACKS_CARD_PID + t->device[i], n + 1,
		       strcmp(tenant, t->tenant) != 0);
	return (int)n + 1;
}

static bool has_begun_before(const struct tracks *t, const json_t *span)
{
	uint64_t begin_ns = (uint64_t)json_integer_value(json_object_get(span, "begin_ns"));

	return begin_ns < t->first_ns || json_is_true(json_object_get(span, "began_earlier"));
}

static void write_lease(struct tracks *t, unsigned i, const json_t *span, uint64_t end_ns,
			bool goes_on)
{
	const char *tenant = json_string_value(json_object_get(span, "tenant"));
	const char *kind = json_string_value(json_object_get(span, "kind"));
	const char *end = json_string_value(json_object_get(span, "end"));
	uint64_t begin_ns = (uint64_t)json_integer_value(json_object_get(span, "begin_ns"));
	uint64_t closing_ns = (uint64_t)json_integer_value(json_object_get(span, "closing_ns"));
	int64_t pid = TRACKS_CARD_PID + t->device[i];
	int line = tenant ? tenant_line(t, i, tenant) : -1;

	if (line < 0 || !kind)
		return;
	slice(t, "lease", pid, line, begin_ns, end_ns, !strcmp(kind, "free") ? "alone" : "lease");
	out_args(t->out);
	out_text(t->out, "tenant", tenant);
	out_whole(t->out, "number", (uint64_t)json_integer_value(json_object_get(span, "number")));
	if (end)
		out_text(t->out, "end", end);
	if (json_is_true(json_object_get(span, "with_step")))
		out_bool(t->out, "with_step", true);
	if (json_is_true(json_object_get(span, "expired")))
		out_bool(t->out, "expired", true);
	if (has_begun_before(t, span))
		out_bool(t->out, "began_before", true);
	if (goes_on)
		out_bool(t->out, "goes_on", true);
	out_event_end(t->out);
	if (!closing_ns || closing_ns >= end_ns)
		return;
	slice(t, "lease", pid, line, closing_ns, end_ns, "drain");
	out_event_end(t->out);
}

/* Replies repeat a lease until it ends. */
static void count_lease(struct tracks *t, unsigned i, const json_t *span)
{
	const char *tenant = json_string_value(json_object_get(span, "tenant"));
	const char *kind = json_string_value(json_object_get(span, "kind"));
	uint64_t number = (uint64_t)json_integer_value(json_object_get(span, "number"));

	if (number <= t->card[i].lease_number)
		return;
	t->card[i].lease_number = number;
	if (!tenant || !kind || strcmp(tenant, t->tenant) != 0 || has_begun_before(t, span))
		return;
	if (strcmp(kind, "free") != 0)
		t->leases++;
}

static void note_leases(struct tracks *t, unsigned i, const json_t *device)
{
	const json_t *leases = json_object_get(device, "leases");
	size_t length = json_array_size(leases);

	t->leases_lost += (uint64_t)json_integer_value(json_object_get(device, "leases_lost"));
	json_decref(t->card[i].going_on);
	t->card[i].going_on = NULL;
	for (size_t k = 0; k < length; k++) {
		json_t *span = json_array_get(leases, k);
		const json_t *end = json_object_get(span, "end_ns");

		count_lease(t, i, span);
		if (json_is_integer(end)) {
			write_lease(t, i, span, (uint64_t)json_integer_value(end), false);
		} else {
			json_decref(t->card[i].going_on);
			t->card[i].going_on = json_incref(span);
		}
	}
}

static void add_device(struct tracks *t, unsigned index)
{
	char name[32];

	t->device[t->device_count++] = index;
	snprintf(name, sizeof(name), "GPU %u: who has it", index);
	out_name(t->out, "process_name", TRACKS_CARD_PID + index, 0, name);
	out_sort_index(t->out, "process_sort_index", TRACKS_CARD_PID + index, 0, SORT_OF_CARDS);
	tenant_line(t, (unsigned)t->device_count - 1, t->tenant);
}

void tracks_add(struct tracks *t, const json_t *reply, uint64_t now_ns)
{
	const json_t *devices = json_object_get(reply, "devices");
	size_t count_now = json_array_size(devices);

	note_state(t, json_string_value(json_object_get(reply, "state")), now_ns);
	for (unsigned i = 0; i < count_now && i < TRACKS_DEVICES; i++) {
		const json_t *device = json_array_get(devices, i);

		if (i >= t->device_count)
			add_device(t,
				   (unsigned)json_integer_value(json_object_get(device, "index")));
		note_figures(t, i, device, now_ns);
		note_leases(t, i, device);
	}
}

void tracks_end(struct tracks *t, uint64_t now_ns)
{
	write_state(t, now_ns);
	for (unsigned i = 0; i < t->device_count; i++) {
		struct tracks_card *card = &t->card[i];

		if (card->going_on)
			write_lease(t, i, card->going_on, now_ns, true);
		json_decref(card->going_on);
		card->going_on = NULL;
		while (card->tenant_count)
			free(card->tenant[--card->tenant_count]);
	}
}
