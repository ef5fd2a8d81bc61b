#include "daemon/kubelet/kube/use_publisher.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "daemon/kubelet/kube/card_use.h"
#include "daemon/state/node/node.h"
#include "daemon/state/tenant.h"
#include "kube/hami/priority.h"

#define PUBLISH_PARTS 20 /* shortest interval between writes: 1/20 of the window */
#define ALIVE_PARTS 5    /* longest interval between writes: 1/5 of the window */
#define MIB_BITS 20

struct watched_card {
	struct card_use use;
	/* GPU time charged since the last sample, without that of opportunistic tenants (is_opportunistic()) */
	uint64_t charged_ns;
	double held_pct;
	uint64_t memory_bytes;
	bool has_opportunistic;
};

struct use_publisher {
	struct node *node;
	void (*publish)(void *data);
	void *data;
	struct loop_source *timer;
	/* sampled_ns, last_published_ns: when the use was last sampled and published; 0: not yet */
	uint64_t window_ns, sampled_ns, last_published_ns;
	char *text;
	struct watched_card card[NODE_MAX_CARDS];
	struct kube_use published[NODE_MAX_CARDS];
};

/* A tenant without a guarantee and of the lowest priority, which schedulers place by measured use. */
static bool is_opportunistic(const struct tenant *t, unsigned device)
{
	return t->terms.priority <= KUBE_PRIORITY_OPPORTUNISTIC &&
	       t->terms.device[device].promise.cores_pct <= 0;
}

static void count_device(struct use_publisher *p, struct tenant *t, unsigned device, uint64_t now_ns)
{
	struct tenant_device *d = &t->device[device];
	struct watched_card *card = &p->card[t->terms.device[device].card->index];
	uint64_t charged_ns = d->lessee ? lessee_figures(d->lessee).account.charged_ns : 0;
	if (!d->published_since_ns)
		d->published_since_ns = now_ns;
	card->memory_bytes += tenant_usage(t, device).used_bytes;
	card->has_opportunistic |= is_opportunistic(t, device);
	if (!is_opportunistic(t, device)) {
		if (charged_ns > d->published_ns)
			card->charged_ns += charged_ns - d->published_ns;
		/* Schedulers take a guarantee as used in full until held_pct has it. So add it only after a full window. */
		if (now_ns - d->published_since_ns >= p->window_ns)
			card->held_pct += t->terms.device[device].promise.cores_pct;
	}
	d->published_ns = charged_ns;
}

static void sample(struct use_publisher *p, uint64_t now_ns)
{
	struct tenant *t;
	uint64_t passed_ns = now_ns - p->sampled_ns;
	for (unsigned i = 0; i < p->node->card_count; i++) {
		struct watched_card *card = &p->card[i];
		*card = (struct watched_card){ .use = card->use };
	}
	TAILQ_FOREACH(t, &p->node->tenants, link)
		for (unsigned i = 0; i < t->terms.device_count; i++)
			count_device(p, t, i, now_ns);
	for (unsigned i = 0; p->sampled_ns && i < p->node->card_count; i++) {
		double pct = 100.0 * (double)p->card[i].charged_ns / (double)passed_ns;
		card_use_add(&p->card[i].use, fmin(pct, 100));
	}
	p->sampled_ns = now_ns;
}

static struct kube_use use_of(const struct use_publisher *p, unsigned i)
{
	const struct watched_card *card = &p->card[i];
	struct kube_use use = {
		.peak_pct = (unsigned)lround(card_use_peak(&card->use)),
		.now_pct = (unsigned)lround(card_use_now(&card->use)),
		/* Rounding down is safe: schedulers count the part of the guarantees above held_pct as used in full. */
		.held_pct = (unsigned)card->held_pct,
		.memory_mib = card->memory_bytes >> MIB_BITS
	};
	snprintf(use.id, sizeof(use.id), "%s", p->node->card[i].info.uuid_text);
	return use;
}

static bool is_due(const struct use_publisher *p, const struct kube_use *is, uint64_t now_ns)
{
	uint64_t since_ns = now_ns - p->last_published_ns;
	bool must_publish = !p->last_published_ns || since_ns >= p->window_ns / ALIVE_PARTS;
	if (p->last_published_ns && since_ns < p->window_ns / PUBLISH_PARTS)
		return false;
	for (unsigned i = 0; !must_publish && i < p->node->card_count; i++)
		must_publish = card_use_must_publish(&(struct card_use_change){
			.published = &p->published[i],
			.is = &is[i],
			.card_mib = p->node->card[i].info.memory_bytes >> MIB_BITS,
			.has_opportunistic = p->card[i].has_opportunistic });
	return must_publish;
}

static void publish_if_new(void *data, uint32_t events)
{
	struct use_publisher *p = data;
	struct kube_use is[NODE_MAX_CARDS];
	uint64_t now_ns = clock_now_ns();
	sample(p, now_ns);
	for (unsigned i = 0; i < p->node->card_count; i++)
		is[i] = use_of(p, i);
	if (!is_due(p, is, now_ns))
		return;
	const struct kube_uses uses = { .measured_s = (int64_t)time(NULL),
					.count = p->node->card_count,
					.card = is };
	char *text = uses_format(&uses);
	if (!text)
		return;
	/* The text contains the time in seconds, so two texts are equal only within one second. */
	bool is_new = !p->text || strcmp(p->text, text) != 0;
	free(p->text);
	p->text = text;
	if (!is_new)
		return;
	memcpy(p->published, is, sizeof(is));
	p->last_published_ns = now_ns;
	p->publish(p->data);
}

char *use_publisher_text(const struct use_publisher *p)
{
	return p && p->text ? strdup(p->text) : NULL;
}

int use_publisher_start(struct node *node, void (*publish)(void *data), void *data,
			struct use_publisher **ret, struct error *err)
{
	struct use_publisher *p = calloc(1, sizeof(*p));
	if (!p)
		return error_set_errno(err, ENOMEM, "kube_use_window");
	*p = (struct use_publisher){ .node = node,
				     .publish = publish,
				     .data = data,
				     .window_ns = node->config.kube_use_window_ns };
	int r = loop_add_timer(node->loop, publish_if_new, p, &p->timer);
	if (r < 0) {
		use_publisher_stop(p);
		return error_set_errno(err, -r, "kube_use_window");
	}
	uint64_t every_ns = p->window_ns / CARD_USE_SAMPLES;
	loop_arm(p->timer, every_ns, every_ns);
	*ret = p;
	return 0;
}

struct use_publisher *use_publisher_stop(struct use_publisher *p)
{
	if (!p)
		return NULL;
	loop_remove(p->timer);
	free(p->text);
	free(p);
	return NULL;
}
