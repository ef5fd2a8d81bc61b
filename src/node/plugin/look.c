/* What the plugin looks at: whether the cards are well, and which claims the kubelet's pods need. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "node/claims/claims.h"
#include "node/plugin/allocate.h"
#include "node/plugin/plugin_inside.h"

#define TICK_NS NSEC_PER_SEC
#define PODS_NS (10 * NSEC_PER_SEC)
#define XID_OFF_THE_BUS 79 /* its readings show that, and its return */

/* ---- which claims are needed ---- */

/* A claim of somebody else's is no business of the kubelet's. */
static enum claim_need need_of(void *data, const struct claim *claim)
{
	const struct plugin *p = data;
	struct slice_set held;
	if (!allocate_made(claim))
		return CLAIM_UNWANTED;
	if (!p->pods || !pod_resources_get(p->pods, &held))
		return CLAIM_UNKNOWN;
	return allocate_has(&p->slices, claim, &held) ? CLAIM_WANTED : CLAIM_UNWANTED;
}

static void ask_pods(struct plugin *p, uint64_t now_ns)
{
	if (!p->pods || now_ns - p->asked_ns < PODS_NS || !claims_count(p->node->claims))
		return;
	p->asked_ns = now_ns;
	pod_resources_ask(p->pods);
}

/* ---- health ---- */

static void note(struct plugin *p, unsigned card, bool has_answered, bool *changed)
{
	if (!health_note(&p->health[card], has_answered))
		return;
	*changed = true;
	if (has_answered)
		log_info("device plugin: %s answers again: healthy", p->slices.uuid[card]);
	else
		log_warning("device plugin: %s does not answer: unhealthy", p->slices.uuid[card]);
}

static void publish(struct plugin *p)
{
	if (plugin_publish(p) < 0)
		log_warning("device plugin: no memory to tell of the cards' health");
}

void plugin_census(struct plugin *p, const struct census_card *seen)
{
	bool changed = false;
	if (!p)
		return;
	p->read_ns = clock_now_ns();
	for (unsigned i = 0; i < p->slices.card_count; i++)
		note(p, i, seen[i].memory_known, &changed);
	if (changed)
		publish(p);
}

static void card_failed(void *data, unsigned card, uint64_t xid)
{
	struct plugin *p = data;
	if (xid == XID_OFF_THE_BUS || !health_condemn(&p->health[card]))
		return;
	log_warning("device plugin: %s has an error of its own (Xid %" PRIu64 "): unhealthy",
		    p->slices.uuid[card], xid);
	publish(p);
}

/* The census alone looks only while there are tenants. */
static void look(void *data, uint32_t events)
{
	struct plugin *p = data;
	uint64_t now_ns = clock_now_ns();
	bool changed = false;
	if (census_wait_ns(p->node->census, now_ns) >= HEALTH_SILENCE_NS)
		for (unsigned i = 0; i < p->slices.card_count; i++)
			note(p, i, false, &changed);
	if (changed)
		publish(p);
	if (now_ns - p->read_ns >= TICK_NS / 2)
		census_request(p->node->census);
	ask_pods(p, now_ns);
}

/* ---- begin and end ---- */

/* A driver that does not tell of errors is no reason not to serve. */
static void listen_to_xids(struct plugin *p)
{
	struct error err = { 0 };
	if (xids_start(p->node->loop, p->node->config.nvml, &p->slices, card_failed, p, &p->xids,
		       &err) < 0)
		log_info("device plugin: Xid errors are not seen: %s", err.text);
}

int plugin_begin_looking(struct plugin *p, struct error *err)
{
	const struct config *config = &p->node->config;
	int r = 0;
	if (strcmp(config->kube_pod_resources, "none") != 0)
		r = pod_resources_start(config->kube_pod_resources, config->kube_resource,
					&p->slices, &p->pods, err);
	if (r < 0)
		return r;
	if (claims_add_keep(p->node->claims, need_of, p) < 0)
		return error_set(err, ENOSPC, "too many know which claims are needed");
	r = loop_add_timer(p->node->loop, look, p, &p->look_timer);
	if (r < 0)
		return error_set_errno(err, -r, "timer");
	loop_arm(p->look_timer, 0, TICK_NS);
	listen_to_xids(p);
	return 0;
}

void plugin_end_looking(struct plugin *p)
{
	claims_remove_keep(p->node->claims, need_of, p);
	p->pods = pod_resources_stop(p->pods);
	p->xids = xids_stop(p->xids);
	p->look_timer = loop_remove(p->look_timer);
}
