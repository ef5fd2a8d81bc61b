/* Writes metrics whose values are fields of the structs in figures.h: one sample per struct, such as per card. */
#include "daemon/export/metrics/metric.h"

void emit_value(const struct metric *m, const void *thing, const char *labels, struct exposition *x)
{
	const char *base = thing;
	const void *value = base + m->value;
	if (m->if_known && !*(const bool *)(const void *)(base + m->if_known))
		return;
	switch (m->kind) {
	case METRIC_WHOLE: exposition_whole(x, m->name, labels, *(const uint64_t *)value); break;
	case METRIC_NS: exposition_seconds(x, m->name, labels, *(const uint64_t *)value); break;
	case METRIC_PCT: exposition_real(x, m->name, labels, *(const double *)value / 100); break;
	case METRIC_REAL: exposition_real(x, m->name, labels, *(const double *)value); break;
	case METRIC_FLAG: exposition_whole(x, m->name, labels, *(const bool *)value); break;
	case METRIC_OWN: break;
	}
}

/* `thing` is a struct of figures.h, which begins with its labels. */
static void emit_one(const struct metric *m, const void *thing, struct exposition *x)
{
	emit_value(m, thing, thing, x);
}

static void emit_each(const struct metric *m, const void *things, size_t size, size_t count,
		      struct exposition *x)
{
	for (size_t i = 0; i < count; i++)
		emit_one(m, (const char *)things + i * size, x);
}

void emit_daemon(const struct metric *m, const struct metrics_figures *f, struct exposition *x)
{
	emit_one(m, &f->daemon, x);
}

void emit_cards(const struct metric *m, const struct metrics_figures *f, struct exposition *x)
{
	emit_each(m, f->card, sizeof(*f->card), f->card_count, x);
}

void emit_tenants(const struct metric *m, const struct metrics_figures *f, struct exposition *x)
{
	emit_each(m, f->tenant, sizeof(*f->tenant), f->tenant_count, x);
}

void emit_tenant_devices(const struct metric *m, const struct metrics_figures *f,
			 struct exposition *x)
{
	emit_each(m, f->tenant_device, sizeof(*f->tenant_device), f->tenant_device_count, x);
}

void emit_containers(const struct metric *m, const struct metrics_figures *f, struct exposition *x)
{
	emit_each(m, f->container, sizeof(*f->container), f->container_count, x);
}

void emit_container_devices(const struct metric *m, const struct metrics_figures *f,
			    struct exposition *x)
{
	emit_each(m, f->container_device, sizeof(*f->container_device), f->container_device_count,
		  x);
}
