/* Cards that take no new tenants because somebody says so. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "node/health/health.h"
#include "node/health/health_inside.h"
#include "node/node.h"

#define PATH_SIZE (NODE_PATH_MAX + 16)

static int write_file(const struct node *node)
{
	char path[PATH_SIZE], fresh[PATH_SIZE + 8];
	bool is_any = false;
	snprintf(path, sizeof(path), "%s/cordoned", node->run_dir);
	snprintf(fresh, sizeof(fresh), "%s.new", path);
	for (unsigned i = 0; i < node->card_count; i++)
		is_any |= node->card[i].is_cordoned;
	if (!is_any)
		return unlink(path) < 0 && errno != ENOENT ? -errno : 0;
	FILE *f = fopen(fresh, "we");
	if (!f)
		return -errno;
	for (unsigned i = 0; i < node->card_count; i++)
		if (node->card[i].is_cordoned)
			fprintf(f, "%s\n", node->card[i].info.uuid_text);
	bool bad = fflush(f) != 0 || fsync(fileno(f)) < 0;
	bad |= fclose(f) != 0;
	if (bad || rename(fresh, path) < 0) {
		int r = bad ? -EIO : -errno;
		unlink(fresh);
		return r;
	}
	return 0;
}

static struct card *find(struct node *node, const char *uuid_text)
{
	uint8_t uuid[16];
	return gpu_uuid_parse(uuid_text, uuid) < 0 ? NULL : node_find_card(node, uuid);
}

static int load_settings(struct node *node, struct error *err)
{
	char list[CONFIG_PATH_MAX], *save = NULL;
	strcpy(list, node->config.cordon);
	if (!strcmp(list, "none"))
		return 0;
	for (char *word = strtok_r(list, ", ", &save); word; word = strtok_r(NULL, ", ", &save)) {
		struct card *card = find(node, word);
		if (!card)
			return error_set(err, EINVAL,
					 "cordon: '%.60s': must be none, or UUIDs of this "
					 "machine's GPUs, by "
					 "commas",
					 word);
		card->is_cordoned_by_settings = true;
	}
	return 0;
}

int cordon_load(struct node *node, struct error *err)
{
	char path[PATH_SIZE], line[GPU_UUID_TEXT_MAX + 8];
	snprintf(path, sizeof(path), "%s/cordoned", node->run_dir);
	cleanup_file FILE *f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		struct card *card = find(node, line);
		/* One that is not here now may be again: the line goes when the file is next written. */
		if (card)
			card->is_cordoned = true;
	}
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
			"GPU %u is cordoned by the daemon's settings (cordon): take it out there",
			card->index);
	card->is_cordoned = cordoned;
	int r = write_file(node);
	if (r < 0) {
		card->is_cordoned = before;
		return error_set_errno(err, -r, "%s/cordoned", node->run_dir);
	}
	if (!cordoned)
		health_cure_by_hand(card);
	if (before != cordoned)
		log_info("GPU %u (%s) is %s", card->index, card->info.uuid_text,
			 cordoned ? "cordoned: it takes no new tenants" : "no longer cordoned");
	health_tell(node, card);
	return 0;
}
