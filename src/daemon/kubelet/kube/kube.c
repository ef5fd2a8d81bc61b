#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/api/topology.h"
#include "daemon/gpu/health/health.h"
#include "daemon/kubelet/devices/dra_key.h"
#include "daemon/kubelet/kube/stale_bindings.h"
#include "daemon/kubelet/kube/kube.h"
#include "daemon/kubelet/kube/live_terms.h"
#include "daemon/kubelet/kube/node_object.h"
#include "daemon/kubelet/kube/pods.h"
#include "daemon/kubelet/kube/use_publisher.h"
#include "daemon/kubelet/kube/desired_metadata.h"
#include "daemon/state/card_promises.h"
#include "daemon/state/node/node.h"
#include "kube/client/api_access.h"
#include "kube/hami/cards.h"
#include "kube/hami/find_allocating.h"
#include "kube/hami/scores.h"

#define LOOK_NS (30 * NSEC_PER_SEC) /* interval of recomputing what the Node object must have */

#define MIB (UINT64_C(1) << 20)

/* Without the shares of ResourceClaims, which HAMi's scheduler does not know. */
static struct kube_card describe(struct node *node, const struct card *card,
				 const struct place_card *placed)
{
	const struct config *config = &node->config;
	const struct promise_card claimed = node_promised_to(node, card, dra_key_is_of);
	double cores_pct = claimed.promised_cores_pct < 100 ? 100 - claimed.promised_cores_pct : 0;
	struct kube_card k = {
		.index = card->index,
		.count = config_split_count(config),
		.memory_mib = (uint64_t)((double)(promise_unpromised_bytes(&claimed) / MIB) *
					 config->kube_memory_scaling),
		.cores_pct = (unsigned)(cores_pct * config->kube_core_scaling + 0.5),
		.numa = placed->numa_known ? placed->numa : 0,
		.mode = CARD_MODE_DEFAULT,
		.is_healthy = !placed->is_sick
	};
	snprintf(k.id, sizeof(k.id), "%s", card->info.uuid_text);
	cards_type(card->info.name, k.type);
	return k;
}

static int read_scores(const struct node *node, const struct place_node *placed,
		       struct kube_scores *ret)
{
	bool is_known = false;
	struct kube_scores scores;
	int r = scores_new(node->card_count, &scores);
	if (r < 0)
		return r;
	for (unsigned i = 0; i < node->card_count; i++) {
		snprintf(scores.id[i], KUBE_ID_MAX, "%s", node->card[i].info.uuid_text);
		for (unsigned j = 0; j < node->card_count; j++) {
			/* 0 for a MIG instance, because a container never gets it together with another card. */
			bool is_no_pair = i == j || placed->card[i].is_instance ||
					  placed->card[j].is_instance;
			unsigned score = is_no_pair ? 0 : place_link_score(placed->link[i][j]);
			scores.score[i * node->card_count + j] = (int)score;
			is_known |= score > 0;
		}
	}
	if (!is_known)
		scores_free(&scores);
	*ret = scores;
	return 0;
}

/* *ret_scores has no cards if no link is known. Free the results by cards_free() and scores_free(). */
static int inventory_read(struct node *node, struct kube_cards *ret_cards,
			  struct kube_scores *ret_scores)
{
	struct kube_cards cards = { .count = node->card_count };
	cleanup_free struct place_node *placed = calloc(1, sizeof(*placed));
	cards.card = calloc(node->card_count + 1, sizeof(*cards.card));
	int r = placed && cards.card ? 0 : -ENOMEM;
	if (r >= 0)
		topology_model(node, "", placed);
	for (unsigned i = 0; r >= 0 && i < node->card_count; i++)
		cards.card[i] = describe(node, &node->card[i], &placed->card[i]);
	if (r >= 0)
		r = read_scores(node, placed, ret_scores);
	if (r < 0) {
		free(cards.card);
		return r;
	}
	*ret_cards = cards;
	return 0;
}

struct node_kube {
	struct node *node;
	char name[CONFIG_PATH_MAX];
	struct kube_access access;
	struct kube_client *client;
	struct loop_source *source, *timer;
	struct node_object *object;
	/* this and the pointers below are NULL if only the DRA driver is on */
	struct node_pods *pods;
	struct stale_bindings *stale;
	struct live_terms *live;      /* NULL if the setting kube_live_terms is off */
	struct use_publisher *uses;   /* NULL if the setting kube_use_window is 0 */
	bool object_fails, pods_fail; /* the watch of the Node object, or of the pods, fails now */
};

static bool is_off(const struct config *config)
{
	return !strcmp(config->kube_api, "off");
}

int node_kube_check(const struct config *config, struct error *err)
{
	int r = 0;
	if (!is_off(config) && strcmp(config->kube_api, "in-cluster") && config->kube_api[0] != '/')
		return error_set(
			err, EINVAL,
			"kube_api: '%.100s': must be off, in-cluster or a kubeconfig's full path",
			config->kube_api);
	if (config->kube_use_window_ns && config->kube_use_window_ns < NSEC_PER_SEC)
		return error_set(err, EINVAL,
				 "kube_use_window: less than a second: must be 0s or 1s to 10m");
	r = desired_metadata_check_labels(config->kube_labels, err);
	return r < 0 ? error_add(err, r, "kube_labels") : 0;
}

/* Checks that the name needs no escapes in a path or a selector. */
static int check_name(const char *name, struct error *err)
{
	size_t length = strlen(name);
	if (!length || strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-.") != length ||
	    !isalnum((unsigned char)name[0]) || !isalnum((unsigned char)name[length - 1]))
		return error_set(
			err, EINVAL,
			"kube_node_name: '%.80s': must be small letters, digits, '-' and '.'", name);
	return 0;
}

/* The setting, else $NODE_NAME, else the kubelet's default: the host name in small letters. */
static int find_name(struct node_kube *k, struct error *err)
{
	const struct config *config = &k->node->config;
	const char *of_pod = getenv("NODE_NAME");
	if (strcmp(config->kube_node_name, "auto") != 0)
		strcpy(k->name, config->kube_node_name);
	else if (of_pod && *of_pod && strlen(of_pod) < sizeof(k->name))
		strcpy(k->name, of_pod);
	else if (gethostname(k->name, sizeof(k->name) - 1) < 0)
		return error_set_errno(err, errno, "kube_node_name: can't read this machine's name");
	else
		for (char *c = k->name; *c; c++)
			*c = (char)tolower((unsigned char)*c);
	return check_name(k->name, err);
}

/* If both watches (Node object, pods) fail because the server is away, logs that once, and once that both work again. */
static void log_failure_once(struct node_kube *k, bool *fails, const struct error *err)
{
	bool was_failing = k->object_fails || k->pods_fail;
	*fails = err != NULL;
	if (err && !was_failing)
		log_warning("Kubernetes API: %s; trying again", err->text);
	else if (err)
		log_debug("Kubernetes API: %s", err->text);
	else if (was_failing && !k->object_fails && !k->pods_fail)
		log_info("Kubernetes API: %s answers again", k->access.server);
}

static void node_watch_failed(void *data, const struct error *err)
{
	struct node_kube *k = data;
	log_failure_once(k, &k->object_fails, err);
}

static void pods_watch_failed(void *data, const struct error *err)
{
	struct node_kube *k = data;
	log_failure_once(k, &k->pods_fail, err);
}

static void pods_changed(void *data)
{
	const struct node_kube *k = data;
	stale_bindings_check(k->stale);
	live_terms_apply(k->live, false);
}

static void client_ready(void *data, uint32_t events)
{
	const struct node_kube *k = data;
	kube_client_process(k->client);
}

static void refresh_all(void *data, uint32_t events)
{
	struct node_kube *k = data;
	node_kube_refresh(k);
	stale_bindings_check(k->stale);
	live_terms_apply(k->live, true);
}

void node_kube_refresh(struct node_kube *k)
{
	if (!k->pods)
		return;
	struct kube_cards cards = { 0 };
	struct kube_scores scores = { 0 };
	struct desired_metadata desired = { 0 };
	struct error err;
	int r = inventory_read(k->node, &cards, &scores);
	if (r < 0)
		error_set_errno(&err, -r, "the list of GPUs");
	else
		r = desired_metadata_make(&cards, scores.count ? &scores : NULL,
					  k->node->config.kube_labels, &desired, &err);
	cards_free(&cards);
	scores_free(&scores);
	if (r < 0) {
		log_warning("node %s: its GPUs can't be published: %s", k->name, err.text);
		return;
	}
	desired.uses = use_publisher_text(k->uses);
	node_object_set_desired(k->object, &desired);
}

void node_kube_claims_changed(struct node_kube *k)
{
	live_terms_apply(k->live, false);
}

static void use_changed(void *data)
{
	node_kube_refresh(data);
}

static void health_changed(void *data, struct card *card)
{
	node_kube_refresh(data);
}

static int start_client(struct node_kube *k, struct error *err)
{
	int r = node_kube_check(&k->node->config, err);
	if (r >= 0)
		r = find_name(k, err);
	if (r >= 0)
		r = access_by_setting(k->node->config.kube_api, &k->access, err);
	if (r >= 0)
		r = kube_client_new(&k->access, &k->client, err);
	if (r < 0)
		return r;
	k->object = node_object_start(k->client, k->name, node_watch_failed, k);
	return k->object ? 0 : error_set_errno(err, ENOMEM, "kube_api");
}

/* False if only the DRA driver is on: then nothing is written to the Node object, and pods are not tracked. */
static bool has_protocol(const struct config *config)
{
	return config->is_kube_plugin || !config->is_kube_dra;
}

static int start_protocol(struct node_kube *k, struct error *err)
{
	k->pods = pods_start(k->client, k->name, pods_changed, pods_watch_failed, k);
	k->stale = k->pods ? stale_bindings_start(k->client, k->name, k->object, k->pods) : NULL;
	bool is_live = k->node->config.is_kube_live_terms;
	if (is_live && k->pods)
		k->live = live_terms_start(k->node, k->client, k->name, k->pods);
	if (!k->stale || (is_live && !k->live))
		return error_set_errno(err, ENOMEM, "kube_api");
	int r = k->node->config.kube_use_window_ns
			? use_publisher_start(k->node, use_changed, k, &k->uses, err)
			: 0;
	if (r < 0)
		return r;
	r = loop_add_timer(k->node->loop, refresh_all, k, &k->timer);
	if (r < 0)
		return error_set_errno(err, -r, "kube_api");
	loop_arm(k->timer, LOOK_NS, LOOK_NS);
	r = health_subscribe(k->node, health_changed, k, err);
	if (r < 0)
		return error_add(err, r, "kube_api");
	node_kube_refresh(k);
	return 0;
}

static int start(struct node_kube *k, struct error *err)
{
	int r = start_client(k, err);
	if (r < 0)
		return r;
	r = loop_add(k->node->loop, kube_client_fd(k->client), EPOLLIN, client_ready, k, &k->source);
	if (r < 0)
		return error_set_errno(err, -r, "kube_api");
	if (has_protocol(&k->node->config))
		r = start_protocol(k, err);
	if (r < 0)
		return r;
	log_info("Kubernetes: node %s, API at %s", k->name, k->access.server);
	return 0;
}

int node_kube_start(struct node *node, struct node_kube **ret, struct error *err)
{
	if (is_off(&node->config))
		return 0;
	struct node_kube *k = calloc(1, sizeof(*k));
	if (!k)
		return error_set_errno(err, ENOMEM, "kube_api");
	k->node = node;
	int r = start(k, err);
	if (r < 0) {
		node_kube_stop(k);
		return r;
	}
	*ret = k;
	return 0;
}

bool node_kube_withdraw(struct node_kube *k)
{
	return k && k->pods && node_object_withdraw(k->object);
}

/*
 * A pod is being bound to this node, or the kubelet has not yet called Allocate for a bound pod. The scheduler locks the node
 * before the binding; the lock is held until the pod has all its shares.
 */
static bool is_pod_on_way(const struct node_kube *k)
{
	size_t count;
	struct node_lock lock;
	const struct kube_pod *const *pod = pods_all(k->pods, &count);
	int64_t now_s = (int64_t)time(NULL);
	if (node_object_lock(k->object, &lock, NULL) >= 0 &&
	    !node_lock_is_expired(&lock, now_s, NODE_LOCK_EXPIRY_S))
		return true;
	for (size_t i = 0; i < count; i++)
		if (choice_is_open(pod[i], k->name, now_s))
			return true;
	return false;
}

enum kube_withdrawal node_kube_withdrawal(const struct node_kube *k)
{
	if (!node_object_has_withdrawn(k->object))
		return KUBE_WITHDRAWING;
	return is_pod_on_way(k) ? KUBE_PODS_ON_WAY : KUBE_MAY_END;
}

struct node_kube *node_kube_stop(struct node_kube *k)
{
	if (!k)
		return NULL;
	health_unsubscribe(k->node, health_changed, k);
	loop_remove(k->source);
	loop_remove(k->timer);
	use_publisher_stop(k->uses);
	stale_bindings_stop(k->stale);
	live_terms_stop(k->live);
	pods_stop(k->pods);
	node_object_stop(k->object);
	kube_client_free(k->client);
	access_free(&k->access);
	free(k);
	return NULL;
}

const char *node_kube_name(const struct node_kube *k)
{
	return k->name;
}

struct kube_client *node_kube_client(struct node_kube *k)
{
	return k->client;
}

struct node_object *node_kube_object(struct node_kube *k)
{
	return k->object;
}

struct node_pods *node_kube_pods(struct node_kube *k)
{
	return k->pods;
}
