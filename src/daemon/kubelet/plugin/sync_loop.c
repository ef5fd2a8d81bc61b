/*
 * The plugin's periodic work. Each second: asks the kubelet, if due, which containers hold which devices; compares the answer
 * with our claims (reconcile.h); releases claims of ended pods. Also publishes changes of the cards' health, at once.
 */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/containers/claims/claims.h"
#include "daemon/gpu/health/health.h"
#include "daemon/kubelet/devices/allocate.h"
#include "daemon/kubelet/devices/claim_holders.h"
#include "daemon/kubelet/plugin/reconcile.h"
#include "daemon/kubelet/plugin/allocate_annotated.h"
#include "daemon/kubelet/plugin/plugin_inside.h"

#define TICK_NS NSEC_PER_SEC
#define PODS_NS (10 * NSEC_PER_SEC)
#define SOON_NS (2 * NSEC_PER_SEC)
/* Interval of asking the kubelet while there is no claim: a pod may still hold slices that an earlier daemon gave. */
#define NO_CLAIMS_NS (30 * NSEC_PER_SEC)

/* A callback for claims_add_need_check(). CLAIM_UNWANTED also for a claim that was not made for the kubelet. */
static enum claim_need need_of(void *data, const struct claim *claim)
{
	const struct plugin *p = data;
	struct slice_set held;
	if (p->annotated && annotated_is_own_claim(claim))
		return annotated_need(p->annotated, claim);
	if (!allocate_is_own_claim(claim))
		return CLAIM_UNWANTED;
	if (!p->pods || !pod_resources_get(p->pods, &held))
		return CLAIM_UNKNOWN;
	return allocate_has(&p->slices, claim, &held) ? CLAIM_WANTED : CLAIM_UNWANTED;
}

static void ask_pods(struct plugin *p, uint64_t now_ns)
{
	uint64_t every_ns = claims_count(p->node->claims) ? PODS_NS : NO_CLAIMS_NS;
	if (!p->pods || (p->pods_requested_ns && now_ns - p->pods_requested_ns < every_ns))
		return;
	p->pods_requested_ns = now_ns;
	pod_resources_request(p->pods);
}

void plugin_request_pods_soon(struct plugin *p)
{
	uint64_t pods_requested_ns = clock_now_ns() - (PODS_NS - SOON_NS);
	if (pods_requested_ns < p->pods_requested_ns)
		p->pods_requested_ns = pods_requested_ns;
}

void plugin_request_pods(struct plugin *p)
{
	uint64_t now_ns = clock_now_ns();
	if (!p->pods || now_ns - p->pods_requested_ns < TICK_NS)
		return;
	p->pods_requested_ns = now_ns;
	pod_resources_request(p->pods);
}

static void health_changed(void *data, struct card *card)
{
	struct plugin *p = data;
	if (plugin_publish(p) < 0)
		log_warning(
			"device plugin: out of memory: the kubelet gets no report of the GPUs' health");
}

static void sync_all(void *data, uint32_t events)
{
	struct plugin *p = data;
	ask_pods(p, clock_now_ns());
	reconcile_run(p->reconciler, p);
	if (p->annotated)
		annotated_sweep(p->annotated);
}

int plugin_begin_sync(struct plugin *p, struct error *err)
{
	const struct config *config = &p->node->config;
	int r = 0;
	if (strcmp(config->kube_pod_resources, "none") != 0)
		r = pod_resources_start(config->kube_pod_resources, p->endpoint[0].resource,
					&p->slices, &p->pods, err);
	if (r < 0)
		return r;
	p->reconciler = reconcile_new();
	p->node->claim_holders = p->holders = claim_holders_new();
	if (!p->reconciler || !p->holders)
		return error_set_errno(err, ENOMEM, "device plugin");
	r = claims_add_need_check(p->node->claims, need_of, p, err);
	if (r < 0)
		return r;
	r = loop_add_timer(p->node->loop, sync_all, p, &p->sync_timer);
	if (r < 0)
		return error_set_errno(err, -r, "can't make a timer");
	loop_arm(p->sync_timer, 0, TICK_NS);
	return health_subscribe(p->node, health_changed, p, err);
}

void plugin_end_sync(struct plugin *p)
{
	claims_remove_need_check(p->node->claims, need_of, p);
	p->pods = pod_resources_stop(p->pods);
	p->reconciler = reconcile_free(p->reconciler);
	p->node->claim_holders = p->holders = claim_holders_free(p->holders);
	health_unsubscribe(p->node, health_changed, p);
	p->sync_timer = loop_remove(p->sync_timer);
}
