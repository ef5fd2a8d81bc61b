#include "daemon/tasks/watch/use_state.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/state/node/node.h"
#include "daemon/state/use.h"
#include "daemon/tasks/freezer/gpu_records.h"
#include "daemon/tasks/watch/gpu_watch.h"
#include "daemon/util/stamp.h"
#include "daemon/util/state_file.h"

#define USE_STATE_VERSION 1
#define MOST_BYTES (16 << 20)
#define RETRY_NS (60 * NSEC_PER_SEC)

static void find_path(const struct node *node, char path[NODE_PATH_MAX])
{
	snprintf(path, NODE_PATH_MAX, "%s/use.json", node->run_dir);
}

static json_t *to_json(struct node *node)
{
	struct stamp now = stamp_now();
	json_t *cards = json_array();
	for (unsigned i = 0; i < node->card_count; i++)
		json_array_append_new(cards, json_string(node->card[i].info.uuid_text));
	json_t *json = json_pack("{s:i, s:o, s:o, s:o}", "version", USE_STATE_VERSION, "written",
				 stamp_to_json(&now), "devices", cards, "tenants",
				 use_to_json(node));
	if (json)
		gpu_watch_records(node->watch, json);
	return json;
}

static int save(struct node *node, struct error *err)
{
	char path[NODE_PATH_MAX];
	cleanup_json json_t *json = to_json(node);
	find_path(node, path);
	/* Not synced to disk: after a crash of the machine no task continues. */
	return state_file_write(path, json, JSON_COMPACT, MOST_BYTES, false, err);
}

void use_state_save_due(void *data, uint32_t events)
{
	struct node *node = data;
	struct error err = { 0 };
	node->use_unsaved = false;
	if (save(node, &err) >= 0) {
		node->use_save_failed = false;
		return;
	}
	if (!node->use_save_failed)
		log_error("use of GPU time is not saved: %s (the last saved state is "
			  "kept; trying again)",
			  err.text);
	node->use_save_failed = true;
	node->use_unsaved = true;
	loop_arm(node->use_timer, RETRY_NS, 0);
}

void use_state_save(struct node *node)
{
	struct error err = { 0 };
	/* If the start failed before the records were taken over, keep the file as it is. */
	if (node->use_loaded && !node->records && save(node, &err) < 0)
		log_warning("use of GPU time is not saved: %s; the next allotd "
			    "continues from the last saved state",
			    err.text);
}

static int cards_from_json(struct node *node, const json_t *root, struct gpu_records_cards *ret,
			   struct error *err)
{
	json_t *list = NULL;
	if (json_read_array(root, "devices", &list, err) <= 0 ||
	    json_array_size(list) > NODE_MAX_CARDS)
		return error_set(err, EINVAL,
				 "devices: missing, or lists more GPUs than a node can have");
	ret->old_count = (unsigned)json_array_size(list);
	ret->count = node->card_count;
	for (unsigned i = 0; i < ret->old_count; i++) {
		const char *text = json_string_value(json_array_get(list, i));
		uint8_t uuid[16];
		if (!text || gpu_uuid_parse(text, uuid) < 0)
			return error_set(err, EINVAL, "devices: must be UUIDs of GPUs");
		const struct card *card = node_find_card(node, uuid);
		ret->now[i] = card ? (int)card->index : -1;
	}
	return 0;
}

static int from_json(struct node *node, const json_t *root, struct error *err)
{
	struct gpu_records_cards cards;
	struct stamp written, now = stamp_now();
	json_t *tenants = NULL;
	int64_t version = 0;
	if (json_read_int(root, "version", 0, INT32_MAX, &version, err) <= 0)
		return error_set(err, EINVAL, "version: missing");
	if (version != USE_STATE_VERSION)
		return error_set(err, EINVAL,
				 "has version %d, but this allotd reads version %d: another "
				 "version of allotd wrote the file",
				 (int)version, USE_STATE_VERSION);
	int r = stamp_from_json(json_object_get(root, "written"), &written, err);
	if (r >= 0)
		r = cards_from_json(node, root, &cards, err);
	if (r < 0)
		return r;
	if (json_read_array(root, "tenants", &tenants, err) <= 0)
		return error_set(err, EINVAL, "tenants: missing");
	struct gpu_records_when when = { .passed_ns = stamp_passed_ns(&written, &now),
					 .is_same_boot = stamp_is_same_boot(&written, &now),
					 .now_ns = clock_now_ns(),
					 .half_life_ns = node->config.use_half_life_ns };
	struct gpu_records *records = NULL;
	r = gpu_records_from_json(root, &cards, &when, &records, err);
	if (r >= 0)
		r = use_from_json(node, tenants, when.passed_ns, err);
	if (r < 0) {
		gpu_records_free(records);
		return r;
	}
	node->records = records;
	return 0;
}

void use_state_load(struct node *node)
{
	char path[NODE_PATH_MAX];
	struct error err = { 0 };
	cleanup_json json_t *root = NULL;
	find_path(node, path);
	node->use_loaded = true;
	int r = state_file_read(path, MOST_BYTES, &root, &err);
	if (r == -ENOENT)
		return;
	if (r >= 0) {
		r = from_json(node, root, &err);
		if (r < 0)
			error_add(&err, r, "%s", path);
	}
	if (r < 0) {
		int moved = state_file_set_aside(path);
		log_warning("%s; the file is renamed to use.json.bad%s%s: used GPU time is counted "
			    "from 0 again",
			    err.text, moved < 0 ? ", which failed: " : "",
			    moved < 0 ? strerror(-moved) : "");
	}
}
