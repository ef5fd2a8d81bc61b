#include "cli/top/data/snapshot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "client/client.h"
#include "cli/container_name.h"
#include "cli/selection.h"
#include "cli/top/data/reader.h"

enum field_kind {
	FIELD_INT,    /* int */
	FIELD_SIGNED, /* int64_t */
	FIELD_WHOLE,  /* uint64_t; a negative value counts as absent */
	FIELD_NUMBER, /* double */
	FIELD_TEXT,   /* char[size] */
};

struct field {
	const char *key;
	enum field_kind kind;
	size_t offset, size;
	size_t has; /* offset of the bool that is set if the member is present; 0 if none */
};

#define FIELD(type, key_, kind_, member, ...) \
	{ \
		.key = (key_), .kind = (kind_), .offset = offsetof(type, member), \
		.size = sizeof(((type *)NULL)->member), __VA_ARGS__ \
	}
#define FIELD_END \
	{ \
		.key = NULL \
	}

static const struct field card_fields[] = {
	FIELD(struct top_card, "index", FIELD_INT, index),
	FIELD(struct top_card, "name", FIELD_TEXT, name),
	FIELD(struct top_card, "policy", FIELD_TEXT, policy),
	FIELD(struct top_card, "memory_bytes", FIELD_WHOLE, memory_bytes),
	FIELD(struct top_card, "promised_bytes", FIELD_WHOLE, promised_bytes),
	FIELD(struct top_card, "memory_used_bytes", FIELD_WHOLE, used_bytes,
	      .has = offsetof(struct top_card, has_used)),
	FIELD(struct top_card, "busy_pct", FIELD_NUMBER, busy_pct,
	      .has = offsetof(struct top_card, has_busy)),
	FIELD(struct top_card, "promised_cores_pct", FIELD_NUMBER, promised_cores_pct),
	FIELD_END,
};

static const struct field tenant_fields[] = {
	FIELD(struct top_tenant, "id", FIELD_TEXT, id),
	FIELD(struct top_tenant, "name", FIELD_TEXT, name),
	FIELD(struct top_tenant, "state", FIELD_TEXT, state),
	FIELD(struct top_tenant, "on_full", FIELD_TEXT, on_full),
	FIELD(struct top_tenant, "violations", FIELD_WHOLE, violations),
	FIELD(struct top_tenant, "priority", FIELD_SIGNED, priority),
	FIELD_END,
};

/* In the order in which the daemon writes the members, because then take() is fastest. */
static const struct field share_fields[] = {
	FIELD(struct top_share, "index", FIELD_INT, card),
	FIELD(struct top_share, "memory_quota_bytes", FIELD_WHOLE, quota_bytes,
	      .has = offsetof(struct top_share, has_quota)),
	FIELD(struct top_share, "memory_used_bytes", FIELD_WHOLE, used_bytes),
	FIELD(struct top_share, "cores_pct", FIELD_NUMBER, requested_pct),
	FIELD(struct top_share, "cores_limit_pct", FIELD_NUMBER, limit_pct),
	FIELD(struct top_share, "cores_limit_now_pct", FIELD_NUMBER, limit_now_pct,
	      .has = offsetof(struct top_share, has_limit_now)),
	FIELD(struct top_share, "lent_pct", FIELD_NUMBER, lent_pct),
	FIELD(struct top_share, "got_1s_pct", FIELD_NUMBER, got_1s_pct,
	      .has = offsetof(struct top_share, has_got)),
	FIELD(struct top_share, "got_60s_pct", FIELD_NUMBER, got_60s_pct),
	FIELD(struct top_share, "waited_s", FIELD_NUMBER, waited_s),
	FIELD(struct top_share, "denied", FIELD_WHOLE, denied),
	FIELD(struct top_share, "cores_effective_pct", FIELD_NUMBER, guaranteed_pct,
	      .has = offsetof(struct top_share, has_asked)),
	FIELD(struct top_share, "used_s", FIELD_NUMBER, used_s),
	FIELD(struct top_share, "overrun_s", FIELD_NUMBER, overrun_s),
	FIELD(struct top_share, "leases", FIELD_WHOLE, leases),
	FIELD(struct top_share, "expired", FIELD_WHOLE, expired),
	FIELD_END,
};

/* Members of a share's "steps". */
static const struct field step_fields[] = {
	FIELD(struct top_share, "per_second", FIELD_NUMBER, steps_per_s,
	      .has = offsetof(struct top_share, has_steps)),
	FIELD(struct top_share, "p50_ms", FIELD_NUMBER, step_p50_ms),
	FIELD(struct top_share, "p99_ms", FIELD_NUMBER, step_p99_ms),
	FIELD_END,
};

/* Returns false if the value has the wrong type. */
static bool store(const struct field *field, struct span value, char *to)
{
	int64_t whole;

	switch (field->kind) {
	case FIELD_TEXT: reader_text(value, to, field->size); return true;
	case FIELD_NUMBER: return reader_number(value, (double *)(void *)to);
	case FIELD_INT:
		if (!reader_whole_number(value, &whole) || whole != (int)whole)
			return false;
		*(int *)(void *)to = (int)whole;
		return true;
	case FIELD_SIGNED: return reader_whole_number(value, (int64_t *)(void *)to);
	case FIELD_WHOLE:
		if (!reader_whole_number(value, &whole) || whole < 0)
			return false;
		*(uint64_t *)(void *)to = (uint64_t)whole;
		return true;
	}
	return false;
}

/* Returns whether the member is one of the fields. Tries *next first: members mostly come in the fields' order. */
static bool take(const struct field *fields, size_t *next, struct span key, struct span value,
		 void *object)
{
	size_t count = 0;

	while (fields[count].key)
		count++;
	for (size_t i = 0; i < count; i++) {
		const struct field *field = &fields[(*next + i) % count];

		if (!reader_is_key(key, field->key))
			continue;
		*next = (*next + i + 1) % count;
		if (store(field, value, (char *)object + field->offset) && field->has)
			*((bool *)object + field->has) = true;
		return true;
	}
	return false;
}

static void copy_text(const json_t *object, const char *key, char *ret, size_t size)
{
	const char *text = json_string_value(json_object_get(object, key));
	const char *end = text ? text_clean_prefix_end(text, size - 1) : NULL;
	size_t length = text ? (size_t)(end - text) : 0;

	if (length)
		memcpy(ret, text, length);
	ret[length] = '\0';
}

#define COPY_TEXT(object, key, field) copy_text((object), (key), (field), sizeof(field))

static uint64_t whole(const json_t *object, const char *key)
{
	json_int_t value = json_integer_value(json_object_get(object, key));

	return value > 0 ? (uint64_t)value : 0;
}

static double number(const json_t *object, const char *key)
{
	return json_number_value(json_object_get(object, key));
}

/* Copies the container's label up to its first control character, cut between characters to fit. */
static void copy_label(const json_t *container, char *ret, size_t size)
{
	char label[CONTAINER_LABEL_MAX];
	const char *end;

	container_label(container, label, sizeof(label));
	end = text_clean_prefix_end(label, size - 1);
	memcpy(ret, label, (size_t)(end - label));
	ret[end - label] = '\0';
}

static void read_card(struct span object, struct top_card *card)
{
	struct span rest = object, key, value, health = { 0 }, reason = { 0 };
	char word[SNAPSHOT_WORD_MAX], why[SNAPSHOT_TEXT_MAX / 2];
	bool is_cordoned = false;
	size_t next = 0;

	while (reader_member(&rest, &key, &value)) {
		if (reader_is_key(key, "health"))
			health = value;
		else if (reader_is_key(key, "health_reason"))
			reason = value;
		else if (reader_is_key(key, "cordoned"))
			is_cordoned = reader_is(value, "true");
		else
			take(card_fields, &next, key, value, card);
	}
	reader_text(health, word, sizeof(word));
	reader_text(reason, why, sizeof(why));
	if (*word && strcmp(word, "healthy") != 0)
		snprintf(card->trouble, sizeof(card->trouble), "%s: %s", word, *why ? why : "?");
	else if (is_cordoned)
		strcpy(card->trouble, "cordoned");
}

static void read_share(struct span object, struct top_share *share)
{
	struct span rest = object, key, value, steps = { 0 };
	size_t next = 0;

	while (reader_member(&rest, &key, &value)) {
		if (reader_is_key(key, "steps"))
			steps = value;
		else
			take(share_fields, &next, key, value, share);
	}
	next = 0;
	while (reader_member(&steps, &key, &value))
		take(step_fields, &next, key, value, share);
	share->has_quota = share->quota_bytes > 0 && share->quota_bytes < INT64_MAX;
	if (!share->has_quota)
		share->quota_bytes = 0;
	if (!share->has_asked)
		share->guaranteed_pct = share->requested_pct;
	share->has_asked = share->guaranteed_pct > 0;
	if (!share->has_limit_now)
		share->limit_now_pct = share->limit_pct;
}

static void read_wait(const json_t *wait, struct top_tenant *tenant)
{
	tenant->is_queued = json_is_object(wait);
	tenant->place = whole(wait, "place");
	tenant->queued_s = number(wait, "waited_s");
}

/* An old daemon reports the moved memory only as a sum, which is used if the tenant has one GPU. */
static void read_swap(const json_t *swap, struct top_tenant *tenant, struct top_share *shares,
		      size_t count)
{
	const json_t *devices = json_object_get(swap, "devices");
	struct top_swap *ret = &tenant->swap;
	size_t i;
	json_t *device;

	ret->is_set = json_is_object(swap);
	COPY_TEXT(swap, "kind", ret->kind);
	COPY_TEXT(swap, "state", ret->state);
	ret->swapped_bytes = whole(swap, "swapped_bytes");
	ret->failed = whole(swap, "failed");
	ret->moved_s = number(swap, "moved_s");
	if (count == 1)
		shares[0].swapped_bytes = ret->swapped_bytes;
	json_array_foreach((json_t *)devices, i, device)
	{
		for (size_t k = 0; k < count; k++)
			if (shares[k].card == device_index(device))
				shares[k].swapped_bytes = whole(device, "swapped_bytes");
	}
}

static void read_offenders(const json_t *offenders, struct top_tenant *tenant)
{
	size_t count = json_array_size(offenders);

	if (count)
		COPY_TEXT(json_array_get(offenders, count - 1), "action", tenant->offence);
}

static void read_containers(const json_t *containers, struct top_tenant *tenant)
{
	if (json_array_size(containers))
		copy_label(json_array_get(containers, 0), tenant->container,
			   sizeof(tenant->container));
}

static size_t count_elements(struct span array)
{
	struct span value;
	size_t count = 0;

	while (reader_element(&array, &value))
		count++;
	return count;
}

/* Returns NULL, without parsing, for null and empty lists, which are the most frequent values. */
static json_t *tree_of(struct span value)
{
	return value.end - value.at > 4 ? reader_tree(value) : NULL;
}

static bool reserve_shares(struct snapshot *snapshot, size_t *size, size_t more)
{
	size_t wanted = snapshot->share_count + more + 1;
	struct top_share *shares;

	if (wanted <= *size)
		return true;
	wanted *= 2;
	shares = realloc(snapshot->shares, wanted * sizeof(*shares));
	if (!shares)
		return false;
	memset(shares + *size, 0, (wanted - *size) * sizeof(*shares));
	snapshot->shares = shares;
	*size = wanted;
	return true;
}

static bool read_tenant(struct span object, struct snapshot *snapshot, size_t *size)
{
	struct top_tenant *tenant = &snapshot->tenants[snapshot->tenant_count];
	struct top_share *shares;
	struct span rest = object, key, value;
	struct span devices = { 0 }, wait = { 0 }, swap = { 0 }, offenders = { 0 },
		    containers = { 0 };
	size_t next = 0, first = snapshot->share_count;

	while (reader_member(&rest, &key, &value)) {
		if (reader_is_key(key, "devices"))
			devices = value;
		else if (reader_is_key(key, "memory_wait"))
			wait = value;
		else if (reader_is_key(key, "swap"))
			swap = value;
		else if (reader_is_key(key, "offenders"))
			offenders = value;
		else if (reader_is_key(key, "containers"))
			containers = value;
		else if (reader_is_key(key, "processes"))
			tenant->processes = count_elements(value);
		else
			take(tenant_fields, &next, key, value, tenant);
	}
	if (!reserve_shares(snapshot, size, count_elements(devices)))
		return false;
	shares = snapshot->shares + first;
	while (reader_element(&devices, &value)) {
		struct top_share *share = &snapshot->shares[snapshot->share_count++];

		share->tenant = snapshot->tenant_count;
		read_share(value, share);
	}
	snapshot->tenant_count++;
	cleanup_json json_t *wait_tree = tree_of(wait), *swap_tree = tree_of(swap);
	cleanup_json json_t *offenders_tree = tree_of(offenders);
	cleanup_json json_t *containers_tree = tree_of(containers);

	read_wait(wait_tree, tenant);
	read_swap(swap_tree, tenant, shares, snapshot->share_count - first);
	read_offenders(offenders_tree, tenant);
	read_containers(containers_tree, tenant);
	return true;
}

static bool read_list(struct span list, struct snapshot *snapshot)
{
	struct span devices = reader_find(list, "devices"), tenants = reader_find(list, "tenants");
	struct span value;
	size_t size = 0;

	/* calloc() of 0 elements may return NULL, so allocate one more. */
	snapshot->cards = calloc(count_elements(devices) + 1, sizeof(*snapshot->cards));
	snapshot->tenants = calloc(count_elements(tenants) + 1, sizeof(*snapshot->tenants));
	if (!snapshot->cards || !snapshot->tenants || !reserve_shares(snapshot, &size, 0))
		return false;
	while (reader_element(&devices, &value))
		read_card(value, &snapshot->cards[snapshot->card_count++]);
	while (reader_element(&tenants, &value))
		if (!read_tenant(value, snapshot, &size))
			return false;
	return true;
}

static bool is_stopped(const char *state)
{
	return strcmp(state, "waiting") == 0 || strcmp(state, "paused") == 0 ||
	       strcmp(state, "leaving") == 0 || strcmp(state, "swapped") == 0 ||
	       strcmp(state, "returning") == 0 || strcmp(state, "stuck") == 0;
}

static bool read_frozen(const json_t *containers, struct snapshot *snapshot)
{
	size_t i;
	json_t *container;

	snapshot->frozen = calloc(json_array_size(containers) + 1, sizeof(*snapshot->frozen));
	if (!snapshot->frozen)
		return false;
	json_array_foreach((json_t *)containers, i, container)
	{
		struct top_frozen *frozen = &snapshot->frozen[snapshot->frozen_count];

		COPY_TEXT(container, "state", frozen->state);
		if (!is_stopped(frozen->state))
			continue;
		copy_label(container, frozen->name, sizeof(frozen->name));
		frozen->frozen_s = number(container, "frozen_s");
		snapshot->frozen_count++;
	}
	return true;
}

struct snapshot *snapshot_make(const char *list, const json_t *tasks, uint64_t at_ns)
{
	struct snapshot *snapshot = calloc(1, sizeof(*snapshot));

	if (!snapshot)
		return NULL;
	snapshot->at_ns = at_ns;
	if (!read_list(reader_whole(list ? list : ""), snapshot) ||
	    !read_frozen(json_object_get(tasks, "containers"), snapshot))
		return snapshot_free(snapshot);
	return snapshot;
}

struct snapshot *snapshot_free(struct snapshot *snapshot)
{
	if (!snapshot)
		return NULL;
	free(snapshot->cards);
	free(snapshot->tenants);
	free(snapshot->shares);
	free(snapshot->frozen);
	free(snapshot);
	return NULL;
}
