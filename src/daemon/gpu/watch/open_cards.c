#include "daemon/gpu/watch/open_cards.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fnv.h"
#include "base/log.h"
#include "daemon/api/topology.h"
#include "daemon/gpu/census.h"
#include "daemon/gpu/sensor.h"
#include "daemon/state/node/drain.h"
#include "daemon/state/node/node.h"
#include "daemon/util/lock.h"

/* Runs in an arbitration's thread: makes the main thread call memory_event_ready(). */
static void notify_main_thread(void *data)
{
	const struct node *node = data;
	eventfd_write(node->memory_event_fd, 1);
}

static void memory_event_ready(void *data, uint32_t events)
{
	struct node *node = data;
	uint64_t count;
	if (read(node->memory_event_fd, &count, sizeof(count)) <= 0)
		return;
	if (census_is_due(node))
		census_request(node->census);
	node_grant_soon(node);
}

static int open_memory_event(struct node *node, struct error *err)
{
	node->memory_event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int r = node->memory_event_fd < 0
			? -errno
			: loop_add(node->loop, node->memory_event_fd, EPOLLIN, memory_event_ready,
				   node, &node->memory_event_source);
	return r < 0 ? error_set_errno(err, -r, "can't make the eventfd for changes of GPU memory")
		     : 0;
}

/* Makes the name of the card's lock: its UUID; if simulated, a hash of the simulation's socket path and the UUID. */
static void card_key(const struct node *node, const struct card *card, char *key, size_t size)
{
	if (node->simulated)
		snprintf(key, size, "sim-%08x-%s",
			 fnv32(node->sim_socket, strlen(node->sim_socket)), card->info.uuid_text);
	else
		snprintf(key, size, "%s", card->info.uuid_text);
	for (char *c = key; *c; c++)
		if (*c == '/')
			*c = '_';
}

static int open_card(struct node *node, unsigned index, struct error *err)
{
	struct card *card = &node->card[index];
	struct gpu_memory memory;
	char key[GPU_UUID_TEXT_MAX + 32];

	*card = (struct card){ .index = index,
			       .lock_fd = { -1, -1, -1 },
			       .context_bytes = node->config.context_bytes };
	node->card_count = index + 1;
	int r = node->backend->info(node->gpu, index, &card->info, err);
	if (r < 0)
		return r;
	card_key(node, card, key, sizeof(key));
	r = lock_card(key, node->run_dir, card->lock_fd, err);
	if (r > 0)
		log_warning("GPU %u: %s; this daemon shares the GPU all the same", index, err->text);
	if (r >= 0)
		r = arbitration_start(&card->arbitration, &node->config.arbiter, err);
	const struct arbiter_config *policy = &node->config.arbiter;
	if (r >= 0 && policy->policy == ARBITER_POLICY_FEEDBACK &&
	    policy->feedback_sensor == ARBITER_SENSOR_NVML)
		r = sensor_start(node->backend, node->gpu, index, card->arbitration, &card->sensor,
				 err);
	if (r < 0)
		return error_add(err, r, "GPU %u (%s)", index, card->info.uuid_text);
	arbitration_set_elastic(card->arbitration, &node->config.elastic);
	arbitration_set_turns(card->arbitration, node->config.has_turns);
	arbitration_set_on_memory(card->arbitration, notify_main_thread, node);
	arbitration_set_gangs(card->arbitration, node->gangs, index);
	if (node->backend->memory(node->gpu, index, &memory, NULL) >= 0) {
		card->memory_known = true;
		card->memory_used_bytes = memory.used_bytes;
	}
	return 0;
}

int cards_start(struct node *node, struct error *err)
{
	int r = open_memory_event(node, err);
	if (r >= 0)
		r = node->backend->open(node->gpu_source, &node->gpu, err);
	if (r < 0)
		return r;
	const char *left_out = node->backend->left_out ? node->backend->left_out(node->gpu) : "";
	if (*left_out)
		log_warning("some GPUs or MIG instances are not shared: %s", left_out);
	unsigned count = node->backend->count(node->gpu);
	node->gangs = node->config.is_gang && count > 1 ? gangs_new() : NULL;
	if (node->config.is_gang && count > 1 && !node->gangs)
		return error_set_errno(err, ENOMEM,
				       "can't start gangs (tenants that use several GPUs at once)");
	if (count > NODE_MAX_CARDS)
		return error_set(
			err, E2BIG,
			"%u GPUs and MIG instances found, and allotd can't start with more than %d: make fewer MIG instances",
			count, NODE_MAX_CARDS);
	for (unsigned i = 0; i < count; i++) {
		r = open_card(node, i, err);
		if (r < 0)
			return r;
	}
	return topology_read(node, &node->topology, err);
}

void cards_stop(struct node *node)
{
	for (unsigned i = 0; i < node->card_count; i++) {
		struct card *card = &node->card[i];
		card->sensor = sensor_stop(card->sensor);
		arbitration_stop(card->arbitration);
		drain_free_all(card);
		lock_release(card->lock_fd);
	}
	node->card_count = 0;
	node->gangs = gangs_free(node->gangs);
	node->topology = topology_free(node->topology);
	if (node->gpu)
		node->gpu = node->backend->close(node->gpu);
	node->memory_event_source = loop_remove(node->memory_event_source);
	close_fd(&node->memory_event_fd);
}
