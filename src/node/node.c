#include "node/node.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "node/admission.h"
#include "node/adopt.h"
#include "node/audit/audit.h"
#include "node/census.h"
#include "node/checkpoint/tenant_checkpoint.h"
#include "node/claims/claims.h"
#include "node/control.h"
#include "node/drain.h"
#include "node/elastic.h"
#include "node/freezer/gpu_records.h"
#include "node/freezer/gpu_watch.h"
#include "node/kube/kube.h"
#include "node/lock.h"
#include "node/metrics/metrics.h"
#include "node/mps/programs.h"
#include "node/mps/space.h"
#include "node/page/page.h"
#include "node/plugin/plugin.h"
#include "node/pod_stage.h"
#include "node/sensor.h"
#include "node/swap_turns.h"
#include "node/tenant.h"
#include "node/tenant_state.h"
#include "node/topology.h"
#include "node/use.h"
#include "node/use_state.h"
#include "node/violation/violations.h"

#define TICK_NS NSEC_PER_SEC
#define FIRST_LINGER_NS \
	(1 * NSEC_PER_SEC) /* more, before the first tenant: whoever started it comes */

struct tenant *node_find_tenant(struct node *node, const char *name_or_id)
{
	struct tenant *t = text_index_find(&node->tenant_names, name_or_id);
	return t ? t : text_index_find(&node->tenant_ids, name_or_id);
}

struct card *node_find_card(struct node *node, const uint8_t uuid[16])
{
	for (unsigned i = 0; i < node->card_count; i++)
		if (!memcmp(node->card[i].info.uuid, uuid, 16))
			return &node->card[i];
	return NULL;
}

/* Is the tenant an init container, which does not run beside the other containers of its pod? */
static bool is_init(const struct tenant *t)
{
	return strchr(t->terms.claim.key, '@') && pod_stage_of(t->terms.claim.key).is_init;
}

static struct stage_amount stage_amount_of(struct tenant *t, unsigned device)
{
	const struct promise *q = &t->terms.device[device].promise;
	struct stage_amount a = { .cores_pct = q->cores_pct };
	if (tenant_is_off_card(t))
		return a;
	if (t->terms.on_full == ON_FULL_WAIT)
		a.granted_bytes = admission_taken_bytes(t, device);
	else if (t->terms.on_full == ON_FULL_FAIL && q->memory_given)
		a.promised_bytes = q->quota_bytes;
	return a;
}

/* Without memory for the list all is counted as if it ran at once. */
static void take_stages_off(struct node *node, const struct card *card, const struct tenant *except,
			    const struct pod_stage *beside, struct promise_card *p)
{
	struct tenant *t;
	size_t count = 0;
	cleanup_free struct stage_item *items = calloc(p->tenant_count, sizeof(*items));
	if (!items)
		return;
	TAILQ_FOREACH(t, &node->tenants, link)
	for (unsigned i = 0; i < t->terms.device_count; i++) {
		if (t == except || t->terms.device[i].card != card)
			continue;
		items[count++] = (struct stage_item){ pod_stage_of(t->terms.claim.key),
						      stage_amount_of(t, i) };
	}
	struct stage_amount unneeded = pod_stage_unneeded(items, count, beside);
	p->promised_bytes -= unneeded.promised_bytes;
	p->granted_bytes -= unneeded.granted_bytes;
	p->promised_cores_pct -= unneeded.cores_pct;
}

static struct promise_card promised(struct node *node, const struct card *card,
				    const struct tenant *except, const char *key)
{
	struct promise_card p = { .index = card->index,
				  .memory_bytes = card->info.memory_bytes,
				  .kept_bytes = card->kept_bytes + card->returning_bytes,
				  .may_overcommit = !node->config.refuse_overcommit };
	const struct pod_stage beside = pod_stage_of(key);
	bool has_init = beside.is_init;
	struct tenant *t;
	TAILQ_FOREACH(t, &node->tenants, link)
	{
		if (t == except)
			continue;
		has_init |= is_init(t);
		bool is_off = tenant_is_off_card(t);
		for (unsigned i = 0; i < t->terms.device_count; i++) {
			const struct promise *q = &t->terms.device[i].promise;
			if (t->terms.device[i].card != card)
				continue;
			p.tenant_count++;
			p.promised_cores_pct += q->cores_pct;
			if (is_off)
				continue;
			if (t->terms.on_full == ON_FULL_WAIT)
				p.granted_bytes += admission_taken_bytes(t, i);
			else if (t->terms.on_full == ON_FULL_SWAP)
				p.movable_bytes = q->quota_bytes > p.movable_bytes ? q->quota_bytes
										   : p.movable_bytes;
			else if (q->memory_given)
				p.promised_bytes += q->quota_bytes;
			else
				p.rest_held_bytes += tenant_usage(t, i).used_bytes;
		}
	}
	if (has_init && p.tenant_count)
		take_stages_off(node, card, except, beside.uid ? &beside : NULL, &p);
	return p;
}

struct promise_card node_promised(struct node *node, const struct card *card,
				  const struct tenant *except)
{
	return promised(node, card, except, except ? except->terms.claim.key : "");
}

struct promise_card node_promised_beside(struct node *node, const struct card *card, const char *key)
{
	return promised(node, card, NULL, key);
}

void node_update_rest(struct node *node, const struct card *card)
{
	struct promise_card p = node_promised(node, card, NULL);
	struct tenant *t;
	TAILQ_FOREACH(t, &node->tenants, link)
	for (unsigned i = 0; i < t->terms.device_count; i++)
		if (t->terms.device[i].card == card && !t->terms.device[i].promise.memory_given &&
		    !t->terms.is_retired)
			tenant_set_quota(t, i, promise_rest_bytes(&p));
}

/* Of most cards nobody has the rest: the tenants are looked at once for all, not once a card. */
static void update_rests(struct node *node)
{
	bool has_rest[NODE_MAX_CARDS] = { false };
	const struct tenant *t;
	TAILQ_FOREACH(t, &node->tenants, link)
	for (unsigned i = 0; i < t->terms.device_count; i++)
		if (!t->terms.device[i].promise.memory_given)
			has_rest[t->terms.device[i].card->index] = true;
	for (unsigned i = 0; i < node->card_count; i++)
		if (has_rest[i])
			node_update_rest(node, &node->card[i]);
}

void node_tenants_changed(struct node *node)
{
	update_rests(node);
	admission_soon(node);
	bool populated = node->tenant_count > 0;
	if (populated == node->populated)
		return;
	node->populated = populated;
	if (populated) {
		loop_arm(node->tick, TICK_NS, TICK_NS);
		node->census_every_ns = node->config.census_ns;
		loop_arm(node->census_timer, node->census_every_ns, node->census_every_ns);
		loop_disarm(node->linger_timer);
		return;
	}
	loop_disarm(node->tick);
	loop_disarm(node->census_timer);
	if (node->lingers)
		loop_arm(node->linger_timer, node->config.linger_ns, 0);
}

/*
 * Whether nothing can have been charged or lent since the tick before: rest begins a second after the last of that, so
 * what there was before the tick before has been counted there.
 */
static bool is_at_rest(struct node *node)
{
	bool was_resting = node->rested_at_tick;
	node->rested_at_tick = true;
	for (unsigned i = 0; i < node->card_count; i++)
		node->rested_at_tick &= arbitration_is_resting(node->card[i].arbitration);
	return was_resting && node->rested_at_tick;
}

/* Each second: usage to the state files; changed limits; tenants that nobody came back to; who waits. */
static void tick_due(void *data, uint32_t events)
{
	struct node *node = data;
	struct tenant *next;
	uint64_t now_ns = clock_now_ns();
	bool has_rested = is_at_rest(node);
	for (struct tenant *t = TAILQ_FIRST(&node->tenants); t; t = next) {
		next = TAILQ_NEXT(t, link);
		if (!has_rested) {
			use_update(t, now_ns);
			elastic_log(t);
		}
		tenant_state_check_usage(t);
		tenant_end_if_unused(t);
	}
	namespace_use_count(node, !has_rested, now_ns);
	census_look(node);
	admission_soon(node);
}

static void census_due(void *data, uint32_t events)
{
	struct node *node = data;
	census_request(node->census);
}

/* In an arbitration's thread. */
static void tell_fresh(void *data)
{
	const struct node *node = data;
	uint64_t one = 1;
	ssize_t n = write(node->fresh_fd, &one, sizeof(one));
	(void)n; /* full: it will be read */
}

static void fresh_seen(void *data, uint32_t events)
{
	struct node *node = data;
	uint64_t count;
	if (read(node->fresh_fd, &count, sizeof(count)) <= 0)
		return;
	if (census_is_due(node))
		census_request(node->census);
	admission_soon(node);
}

static void drain_due(void *data, uint32_t events)
{
	struct node *node = data;
	for (unsigned i = 0; i < node->card_count; i++)
		drain_update(node, &node->card[i], NULL);
	census_request(node->census);
}

static void linger_due(void *data, uint32_t events)
{
	struct node *node = data;
	/* Someone who is connected may be about to make a tenant. */
	if (node->tenant_count)
		return;
	if (control_connections(node->control)) {
		loop_arm(node->linger_timer, node->config.linger_ns, 0);
		return;
	}
	log_info("no tenants: ending");
	loop_quit(node->loop);
}

static int make_timers(struct node *node, struct error *err)
{
	const struct {
		loop_handler handler;
		struct loop_source **timer;
	} timers[] = {
		{ tick_due, &node->tick },
		{ census_due, &node->census_timer },
		{ tenant_state_save_due, &node->save_timer },
		{ use_state_save_due, &node->use_timer },
		{ adopt_look, &node->adopt_timer },
		{ linger_due, &node->linger_timer },
		{ drain_due, &node->drain_timer },
		{ admission_due, &node->admission_timer },
		{ swap_turns_due, &node->swap_timer },
	};
	for (size_t i = 0; i < sizeof(timers) / sizeof(timers[0]); i++) {
		int r = loop_add_timer(node->loop, timers[i].handler, node, timers[i].timer);
		if (r < 0)
			return error_set_errno(err, -r, "timer");
	}
	return 0;
}

static int make_fresh_event(struct node *node, struct error *err)
{
	node->fresh_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int r = node->fresh_fd < 0 ? -errno
				   : loop_add(node->loop, node->fresh_fd, EPOLLIN, fresh_seen, node,
					      &node->fresh_source);
	return r < 0 ? error_set_errno(err, -r, "event") : 0;
}

static int make_epoch(uint64_t *ret, struct error *err)
{
	uint64_t epoch;
	do {
		if (getrandom(&epoch, sizeof(epoch), 0) != sizeof(epoch))
			return error_set_errno(err, errno, "random numbers");
		epoch &= (UINT64_C(1) << 53) - 1; /* exact in any JSON reader */
	} while (!epoch);
	*ret = epoch;
	return 0;
}

/* What a card's lock is called: its UUID, and for a simulated card the simulation that it is in. */
static void card_key(const struct node *node, const struct card *card, char *key, size_t size)
{
	uint32_t hash = 2166136261U; /* FNV-1a */
	for (const char *c = node->sim_socket; *c; c++)
		hash = (hash ^ (unsigned char)*c) * 16777619U;
	if (node->simulated)
		snprintf(key, size, "sim-%08x-%s", hash, card->info.uuid_text);
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
		log_warning("GPU %u is shared by this daemon all the same: %s", index, err->text);
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
	arbitration_set_fresh(card->arbitration, tell_fresh, node);
	arbitration_set_gangs(card->arbitration, node->gangs, index);
	if (node->backend->memory(node->gpu, index, &memory, NULL) >= 0) {
		card->memory_known = true;
		card->memory_used_bytes = memory.used_bytes;
	}
	return 0;
}

static int open_cards(struct node *node, const char *source, struct error *err)
{
	int r = node->backend->open(source, &node->gpu, err);
	if (r < 0)
		return r;
	const char *left_out = node->backend->left_out ? node->backend->left_out(node->gpu) : "";
	if (*left_out)
		log_warning("not shared: %s", left_out);
	unsigned count = node->backend->count(node->gpu);
	node->gangs = node->config.is_gang && count > 1 ? gangs_new() : NULL;
	if (node->config.is_gang && count > 1 && !node->gangs)
		return error_set_errno(err, ENOMEM, "gangs");
	if (count > NODE_MAX_CARDS)
		return error_set(err, E2BIG, "%u GPUs: this build manages %d", count,
				 NODE_MAX_CARDS);
	for (unsigned i = 0; i < count; i++) {
		r = open_card(node, i, err);
		if (r < 0)
			return r;
	}
	return topology_read(node, &node->topology, err);
}

static int make_tenants_dirs(const struct node *node, struct error *err)
{
	const mode_t modes[] = {
		[TENANT_PLACE_OWN] = node->is_private ? 0700 : 0711, [TENANT_PLACE_CLAIM] = 0700
	};
	for (unsigned i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		char path[NODE_PATH_MAX];
		tenant_dir_path(node, (enum tenant_place)i, NULL, NULL, path);
		if (mkdir(path, modes[i]) < 0 && errno != EEXIST)
			return error_set_errno(err, errno, "make %s", path);
		if (chmod(path, modes[i]) < 0)
			return error_set_errno(err, errno, "chmod %s", path);
	}
	return 0;
}

/* A tenant that is to be off its card still: it gets a keeper of this daemon's when it is adopted. */
static bool is_to_stay_out(struct node *node, const char *key)
{
	const struct tenant *t = node_find_tenant(node, key);
	return t && t->terms.swapped_out && (t->old || t->process_count);
}

int node_open(struct node *node, const struct gpu_backend *backend, const char *source,
	      struct error *err)
{
	TAILQ_INIT(&node->tenants);
	node->fresh_fd = -1;
	node->backend = backend;
	int r = make_epoch(&node->epoch, err);
	if (r >= 0)
		r = loop_new(&node->loop, err);
	if (r >= 0)
		r = audit_start(node, &node->audit, err);
	if (r >= 0)
		r = make_timers(node, err);
	if (r >= 0)
		r = make_fresh_event(node, err);
	if (r >= 0)
		r = open_cards(node, source, err);
	if (r >= 0)
		r = cordon_load(node, err);
	if (r >= 0)
		r = health_start(node, &node->health, err);
	if (r >= 0)
		r = violations_start(node, &node->violations, err);
	if (r >= 0)
		r = census_start(node, &node->census, err);
	if (r >= 0)
		r = make_tenants_dirs(node, err);
	if (r < 0)
		return r;
	r = space_open(node, err);
	if (r >= 0)
		r = programs_open(node, err);
	if (r < 0)
		return r;
	use_state_load(node);
	unsigned adopted = adopt_all(node);
	if (adopted)
		log_info("%u tenants of the daemon before are adopted", adopted);
	r = claims_open(node, &node->claims, err);
	if (r < 0)
		return r;
	space_sweep(node);
	checkpoint_recover(node, is_to_stay_out);
	r = gpu_watch_start(node, &node->watch, err);
	if (r < 0)
		return r;
	r = metrics_start(node, &node->metrics, err);
	if (r >= 0)
		r = page_start(node, &node->page, err);
	if (r >= 0)
		r = node_kube_start(node, &node->kube, err);
	if (r >= 0)
		r = control_open(node, &node->control, err);
	if (r >= 0)
		r = plugin_start(node, &node->plugin, err);
	if (r >= 0 && node->lingers && !node->tenant_count)
		loop_arm(node->linger_timer, FIRST_LINGER_NS + node->config.linger_ns, 0);
	return r;
}

static void close_cards(struct node *node)
{
	for (unsigned i = 0; i < node->card_count; i++) {
		struct card *card = &node->card[i];
		card->sensor = sensor_stop(card->sensor);
		arbitration_stop(card->arbitration);
		drain_free_all(card);
		lock_release(card->lock_fd);
	}
	swap_turns_free(node);
	node->card_count = 0;
	node->gangs = gangs_free(node->gangs);
	node->topology = topology_free(node->topology);
	if (node->gpu)
		node->gpu = node->backend->close(node->gpu);
}

void node_close(struct node *node)
{
	struct tenant *t;
	if (!node->loop)
		return;
	TAILQ_FOREACH(t, &node->tenants, link)
	if (tenant_state_save(t, false, NULL) < 0)
		log_warning("tenant '%s': its last state can't be written", t->terms.name);
	node->plugin = plugin_stop(node->plugin);
	node->metrics = metrics_stop(node->metrics);
	node->page = page_stop(node->page);
	node->kube = node_kube_stop(node->kube);
	use_state_save(node);
	node->violations = violations_stop(node->violations);
	node->watch = gpu_watch_stop(node->watch);
	node->records = gpu_records_free(node->records);
	node->control = control_close(node->control);
	free(node->list_text);
	node->list_text = NULL;
	node->claims = claims_close(node->claims);
	space_let_run(node);
	while ((t = TAILQ_FIRST(&node->tenants)))
		tenant_free(t);
	space_close(node);
	programs_close(node);
	node->health = health_stop(node->health);
	node->census = census_stop(node->census);
	close_cards(node);
	node->tick = loop_remove(node->tick);
	node->census_timer = loop_remove(node->census_timer);
	node->fresh_source = loop_remove(node->fresh_source);
	close_fd(&node->fresh_fd);
	node->save_timer = loop_remove(node->save_timer);
	node->use_timer = loop_remove(node->use_timer);
	node->adopt_timer = loop_remove(node->adopt_timer);
	node->linger_timer = loop_remove(node->linger_timer);
	node->drain_timer = loop_remove(node->drain_timer);
	node->admission_timer = loop_remove(node->admission_timer);
	node->swap_timer = loop_remove(node->swap_timer);
	node->audit = audit_stop(node->audit);
	node->loop = loop_free(node->loop);
}
