/* Writes the samples of metrics under other projects' names and labels. */
#include <stdio.h>

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

typedef double (*figure)(const struct metrics_tenant_device *d);

static double use(const struct metrics_tenant_device *d)
{
	return d->lessee.got_1s_pct;
}

static double memory(const struct metrics_tenant_device *d)
{
	return (double)d->usage.used_bytes / MIB;
}

static double use_asked(const struct metrics_tenant_device *d)
{
	return d->promise.cores_pct / 100;
}

static double memory_asked(const struct metrics_tenant_device *d)
{
	return (double)d->promise.quota_bytes / MIB;
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

static void emit_pods(const struct metric *m, const struct metrics_figures *f, const char *key,
		      figure of, bool has_cards, struct exposition *x)
{
	for (size_t i = 0; i < f->tenant_count; i++) {
		const struct metrics_tenant *t = &f->tenant[i];
		struct exposition_labels all = text_of_pod(f, t);
		double sum = 0;
		for (size_t k = 0; k < t->device_count; k++) {
			const struct metrics_tenant_device *d =
				&f->tenant_device[t->device_first + k];
			struct exposition_labels one = all;
			char name[24];
			sum += of(d);
			snprintf(name, sizeof(name), "gpu%s", d->index);
			exposition_label(one.text, sizeof(one.text), key, name);
			if (has_cards)
				exposition_real(x, m->name, one.text, of(d));
		}
		exposition_label(all.text, sizeof(all.text), key, "total");
		exposition_real(x, m->name, all.text, sum);
	}
}

void emit_gpu_manager_use(const struct metric *m, const struct metrics_figures *f,
			  struct exposition *x)
{
	emit_pods(m, f, "gpu", use, true, x);
}

void emit_gpu_manager_memory(const struct metric *m, const struct metrics_figures *f,
			     struct exposition *x)
{
	emit_pods(m, f, "gpu_memory", memory, true, x);
}

void emit_gpu_manager_use_asked(const struct metric *m, const struct metrics_figures *f,
				struct exposition *x)
{
	emit_pods(m, f, "req_of_gpu", use_asked, false, x);
}

void emit_gpu_manager_memory_asked(const struct metric *m, const struct metrics_figures *f,
				   struct exposition *x)
{
	emit_pods(m, f, "req_of_gpu_memory", memory_asked, false, x);
}
