#include "cli/selection.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"

json_int_t device_index(const json_t *device)
{
	return json_integer_value(json_object_get(device, "index"));
}

const char *device_uuid(const json_t *device)
{
	return json_string_or(device, "uuid", "");
}

static void selection_describe(const struct selection *selection, char *text, size_t size)
{
	size_t used = 0;

	*text = '\0';
	for (size_t i = 0; i < selection->count && used + 1 < size; i++) {
		const char *name = json_string_or(selection->device[i], "name", "?");
		int n = snprintf(text + used, size - used, "%s%zu (%s, %s)", i ? ", " : "", i, name,
				 device_uuid(selection->device[i]));

		used += n > 0 ? (size_t)n : 0;
	}
}

void selection_all(const json_t *devices, struct selection *ret)
{
	size_t i;
	json_t *device;

	ret->count = 0;
	json_array_foreach((json_t *)devices, i, device) if (ret->count < PARSE_DEVICES_MAX)
		ret->device[ret->count++] = device;
}

/* Finds the GPU whose UUID begins with `text`, ignoring case. NULL if there is none, or several (*ret_many). */
static const json_t *find_by_uuid(const struct selection *among, const char *text, size_t length,
				  bool *ret_many)
{
	const json_t *found = NULL;

	*ret_many = false;
	for (size_t i = 0; i < among->count; i++) {
		if (strncasecmp(device_uuid(among->device[i]), text, length) != 0)
			continue;
		if (found) {
			*ret_many = true;
			return NULL;
		}
		found = among->device[i];
	}
	return found;
}

static const json_t *find_visible(const struct selection *all, const char *entry, size_t length)
{
	bool is_many;
	char *end;
	long index;

	if (length > 4 && (strncasecmp(entry, "GPU-", 4) == 0 || strncasecmp(entry, "MIG-", 4) == 0))
		return find_by_uuid(all, entry, length, &is_many);
	index = strtol(entry, &end, 10);
	if (end == entry || end != entry + length || index < 0)
		return NULL;
	for (size_t i = 0; i < all->count; i++)
		if (device_index(all->device[i]) == index)
			return all->device[i];
	return NULL;
}

static void select_visible(const struct selection *all, const char *visible, struct selection *ret)
{
	ret->count = 0;
	for (const char *c = visible; c;) {
		size_t length;
		const json_t *device;

		c += strspn(c, " ");
		length = strcspn(c, ", ");
		device = find_visible(all, c, length);
		if (!device || ret->count == PARSE_DEVICES_MAX)
			return;
		ret->device[ret->count++] = device;
		c += length + strspn(c + length, " ");
		c = *c == ',' ? c + 1 : NULL;
	}
}

static const json_t *find_wanted(const struct selection *among, const struct parse_device *wanted,
				 bool *ret_many)
{
	*ret_many = false;
	if (!wanted->by_uuid)
		return wanted->index < among->count ? among->device[wanted->index] : NULL;
	return find_by_uuid(among, wanted->uuid, strlen(wanted->uuid), ret_many);
}

static int refuse_wanted(const struct selection *among, const struct parse_device *wanted,
			 const char *visible, bool is_many, struct error *err)
{
	char there[300], name[PARSE_UUID_MAX];

	selection_describe(among, there, sizeof(there));
	if (wanted->by_uuid)
		strcpy(name, wanted->uuid);
	else
		snprintf(name, sizeof(name), "%u", (unsigned int)wanted->index);
	if (is_many)
		return error_set(
			err, ENODEV,
			"'%s': several GPUs have a UUID that begins so; write more of it; available: %s",
			name, there);
	return error_set(err, ENODEV, "'%s': no such GPU%s; available: %s", name,
			 visible ? " within CUDA_VISIBLE_DEVICES" : "", there);
}

int selection_choose(const struct selection *among, const struct parse_devices *wanted,
		     const char *visible, struct selection *ret_chosen, struct error *err)
{
	struct selection chosen = { 0 };

	if (wanted->all) {
		*ret_chosen = *among;
		return 0;
	}
	for (size_t i = 0; i < wanted->count; i++) {
		bool is_many;
		const json_t *device = find_wanted(among, &wanted->item[i], &is_many);

		if (!device)
			return refuse_wanted(among, &wanted->item[i], visible, is_many, err);
		for (size_t j = 0; j < chosen.count; j++)
			if (chosen.device[j] == device)
				return error_set(err, EINVAL, "names GPU %s twice",
						 device_uuid(device));
		chosen.device[chosen.count++] = device;
	}
	*ret_chosen = chosen;
	return 0;
}

int selection_make(const json_t *devices, const char *visible, const struct parse_devices *wanted,
		   struct selection *ret_selection, struct error *err)
{
	struct selection all, among;
	int r;

	selection_all(devices, &all);
	if (all.count == 0)
		return error_set(err, ENODEV, "the daemon has no GPU");
	among = all;
	if (visible) {
		select_visible(&all, visible, &among);
		if (among.count == 0)
			return error_set(
				err, ENODEV,
				"CUDA_VISIBLE_DEVICES='%.60s' names no GPU of this machine; unset it, or name one",
				visible);
	}
	if (!wanted) {
		among.count = 1;
		*ret_selection = among;
		return 0;
	}
	r = selection_choose(&among, wanted, visible, ret_selection, err);
	return r < 0 ? error_add(err, r, "--gpu") : 0;
}
