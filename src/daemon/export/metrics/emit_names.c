/* Writes the samples of metrics under other projects' names and labels. */
#include <stdio.h>
#include <string.h>

#include "daemon/export/metrics/metric.h"

#define MIB 1048576.0

static struct exposition_labels text_of_card(const struct metrics_card *c)
{
	struct exposition_labels l = { "" };
	exposition_label(l.text, sizeof(l.text), "device_index", c->index);
	exposition_label(l.text, sizeof(l.text), "device_type", c->name);
	exposition_label(l.text, sizeof(l.text), "device_uuid", c->uuid);
	return l;
}

void emit_hami_cards(const struct metric *m, const struct metrics_figures *f, struct exposition *x)
{
	for (size_t i = 0; i < f->card_count; i++) {
		struct exposition_labels l = text_of_card(&f->card[i]);
		emit_value(m, &f->card[i], l.text, x);
	}
}

void emit_hami_devices(const struct metric *m, const struct metrics_figures *f, struct exposition *x)
{
	for (size_t i = 0; i < f->tenant_device_count; i++)
		emit_value(m, &f->tenant_device[i], f->tenant_device[i].hami_labels, x);
}

/* METRIC_WHOLE: bytes become MiB. METRIC_PCT: percent become a number of cards, 0.3 for 30 %. METRIC_REAL: stays as it is. */
static double value_of(const struct metric *m, const struct metrics_tenant_device *d)
{
	const void *value = (const char *)d + m->value;
	if (m->kind == METRIC_WHOLE)
		return (double)*(const uint64_t *)value / MIB;
	return *(const double *)value / (m->kind == METRIC_PCT ? 100 : 1);
}

static struct exposition_labels text_of_pod(const struct metrics_figures *f,
					    const struct metrics_tenant *t)
{
	struct exposition_labels l = { "" };
	exposition_label(l.text, sizeof(l.text), "pod_name", t->pod);
	exposition_label(l.text, sizeof(l.text), "namespace", t->namespace);
	exposition_label(l.text, sizeof(l.text), "node", f->daemon.host);
	exposition_label(l.text, sizeof(l.text), "container_name", t->container);
	return l;
}

/* The last of m's labels names the card. */
static void emit_pods(const struct metric *m, const struct metrics_figures *f, bool has_cards,
		      struct exposition *x)
{
	const char *key = strrchr(m->labels, ' ') + 1;
	for (size_t i = 0; i < f->tenant_count; i++) {
		const struct metrics_tenant *t = &f->tenant[i];
		struct exposition_labels all = text_of_pod(f, t);
		double sum = 0;
		for (size_t k = 0; k < t->device_count; k++) {
			const struct metrics_tenant_device *d =
				&f->tenant_device[t->device_first + k];
			struct exposition_labels one = all;
			char name[24];
			sum += value_of(m, d);
			snprintf(name, sizeof(name), "gpu%s", d->index);
			exposition_label(one.text, sizeof(one.text), key, name);
			if (has_cards)
				exposition_real(x, m->name, one.text, value_of(m, d));
		}
		exposition_label(all.text, sizeof(all.text), key, "total");
		exposition_real(x, m->name, all.text, sum);
	}
}

void emit_gpu_manager_use(const struct metric *m, const struct metrics_figures *f,
			  struct exposition *x)
{
	emit_pods(m, f, true, x);
}

void emit_gpu_manager_asked(const struct metric *m, const struct metrics_figures *f,
			    struct exposition *x)
{
	emit_pods(m, f, false, x);
}
