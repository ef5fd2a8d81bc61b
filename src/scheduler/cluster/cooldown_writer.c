#include "scheduler/cluster/cooldown_writer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "kube/client/patch.h"
#include "kube/hami/annotations.h"

#define AT_ONCE 8
#define PATH_MAX_BYTES 300

struct note {
	LIST_ENTRY(note) link;
	struct cooldown_writer *writer;
	struct kube_call *call;
	char node[];
};

struct cooldown_writer {
	struct kube_client *client;
	struct model *model;
	bool is_failing; /* the last write failed, which was logged */
	LIST_HEAD(, note) under_way;
};

static void forget(struct note *note)
{
	LIST_REMOVE(note, link);
	kube_call_drop(note->call);
	free(note);
}

static void answered(void *data, const struct kube_answer *answer)
{
	struct note *note = data;
	struct cooldown_writer *n = note->writer;
	bool has_failed = answer->err.code && answer->status != HTTP_NOT_FOUND;
	note->call = NULL;
	if (has_failed) {
		log_write(n->is_failing ? LOG_LEVEL_DEBUG : LOG_LEVEL_WARNING,
			  "node %s: the annotation that lists GPUs closed to pods placed by use can't be written: "
			  "%s; trying again",
			  note->node, answer->err.text);
		model_cooldown_retry(n->model, note->node);
	}
	n->is_failing = has_failed;
	forget(note);
}

static bool start_write(struct cooldown_writer *n, const struct model_cooldown *cooldown)
{
	char path[PATH_MAX_BYTES];
	const struct patch_pair pair = { KUBE_NODE_COOLDOWNS, cooldown->text };
	cleanup_free char *body = patch_metadata(&pair, 1, NULL, 0, NULL);
	struct note *note = calloc(1, sizeof(*note) + strlen(cooldown->node) + 1);
	if (!note)
		return false;
	note->writer = n;
	strcpy(note->node, cooldown->node);
	LIST_INSERT_HEAD(&n->under_way, note, link);
	snprintf(path, sizeof(path), "/api/v1/nodes/%s", cooldown->node);
	const struct kube_request request = {
		.method = "PATCH", .path = path, .type = KUBE_MERGE_PATCH, .body = body
	};
	if (body)
		note->call = kube_call_start(n->client, &request, NULL, answered, note);
	if (note->call)
		return true;
	forget(note);
	return false;
}

static bool is_under_way(const struct cooldown_writer *n, const char *node)
{
	const struct note *note;
	LIST_FOREACH(note, &n->under_way, link)
		if (!strcmp(note->node, node))
			return true;
	return false;
}

void cooldown_writer_run(struct cooldown_writer *n)
{
	struct model_cooldown cooldown;
	for (int i = 0; i < AT_ONCE && model_take_cooldown(n->model, &cooldown) > 0; i++) {
		/* Two concurrent writes to a node could arrive in the wrong order, so the second waits for the first. */
		bool is_later = is_under_way(n, cooldown.node) || !start_write(n, &cooldown);
		free(cooldown.text);
		if (!is_later)
			continue;
		model_cooldown_retry(n->model, cooldown.node);
		return;
	}
}

int cooldown_writer_new(struct kube_client *client, struct model *model,
			struct cooldown_writer **ret)
{
	struct cooldown_writer *n = calloc(1, sizeof(*n));
	if (!n)
		return -ENOMEM;
	*n = (struct cooldown_writer){ .client = client, .model = model };
	LIST_INIT(&n->under_way);
	*ret = n;
	return 0;
}

struct cooldown_writer *cooldown_writer_free(struct cooldown_writer *n)
{
	if (!n)
		return NULL;
	while (!LIST_EMPTY(&n->under_way))
		forget(LIST_FIRST(&n->under_way));
	free(n);
	return NULL;
}
