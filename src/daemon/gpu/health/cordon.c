/* A cordoned card takes no new tenants, because a user or the settings say so. Sets, saves and loads cordons. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "daemon/gpu/health/health.h"
#include "daemon/gpu/health/health_inside.h"
#include "daemon/state/node/node.h"
#include "daemon/util/whole_file.h"

#define PATH_SIZE (NODE_PATH_MAX + 16)
#define MOST_BYTES (1 << 20)

static int write_file(const struct node *node)
{
	char path[PATH_SIZE], lines[NODE_MAX_CARDS * GPU_UUID_TEXT_MAX + 1] = "";
	for (unsigned i = 0; i < node->card_count; i++)
		if (node->card[i].is_cordoned)
			strcat(strcat(lines, node->card[i].info.uuid_text), "\n");
	snprintf(path, sizeof(path), "%s/cordoned", node->run_dir);
	return whole_file_write_lines(path, lines, true);
}

static int load_settings(struct node *node, struct error *err)
{
	char list[CONFIG_PATH_MAX], *save = NULL;
	strcpy(list, node->config.cordon);
	if (!strcmp(list, "none"))
		return 0;
	for (char *word = strtok_r(list, ", ", &save); word; word = strtok_r(NULL, ", ", &save)) {
		struct card *card = node_find_card_text(node, word);
		if (!card)
			return error_set(err, EINVAL,
					 "cordon: '%.60s': must be none, or a comma-separated "
					 "list of UUIDs of this machine's GPUs",
					 word);
		card->is_cordoned_by_settings = true;
	}
	return 0;
}

/* Ignores the line of a missing card; the next write of the file drops that line. */
static void load_line(void *data, char *line)
{
	struct card *card = node_find_card_text(data, line);
	if (card)
		card->is_cordoned = true;
}

int cordon_load(struct node *node, struct error *err)
{
	char path[PATH_SIZE];
	snprintf(path, sizeof(path), "%s/cordoned", node->run_dir);
	whole_file_read_lines(path, MOST_BYTES, load_line, node);
	int r = load_settings(node, err);
	for (unsigned i = 0; r >= 0 && i < node->card_count; i++)
		if (node->card[i].is_cordoned || node->card[i].is_cordoned_by_settings)
			log_info("GPU %u (%s) is cordoned", i, node->card[i].info.uuid_text);
	return r;
}

int cordon_set(struct node *node, struct card *card, bool cordoned, struct error *err)
{
	bool before = card->is_cordoned;
	if (!cordoned && card->is_cordoned_by_settings)
		return error_set(
			err, EPERM,
			"GPU %u is cordoned by allotd's setting 'cordon': remove the GPU from that "
			"setting",
			card->index);
	card->is_cordoned = cordoned;
	int r = write_file(node);
	if (r < 0) {
		card->is_cordoned = before;
		return error_set_errno(err, -r, "%s/cordoned", node->run_dir);
	}
	if (!cordoned)
		health_clear_fault_by_hand(card);
	if (before != cordoned)
		log_info("GPU %u (%s) is %s", card->index, card->info.uuid_text,
			 cordoned ? "cordoned: it takes no new tenants" : "no longer cordoned");
	health_notify(node, card);
	return 0;
}
