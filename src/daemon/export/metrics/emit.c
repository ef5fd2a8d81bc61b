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

/* `things` are structs of figures.h, which begin with their labels. */
static void emit_each(const struct metric *m, const void *things, size_t size, size_t count,
		      struct exposition *x)
{
	for (size_t i = 0; i < count; i++) {
		const char *thing = (const char *)things + i * size;
		emit_value(m, thing, thing, x);
	}
}

#define EMIT(name, things, count) \
	void name(const struct metric *m, const struct metrics_figures *f, struct exposition *x) \
	{ \
		emit_each(m, things, sizeof(*(things)), count, x); \
	}
EMIT(emit_daemon, &f->daemon, 1)
EMIT(emit_cards, f->card, f->card_count)
EMIT(emit_tenants, f->tenant, f->tenant_count)
EMIT(emit_tenant_devices, f->tenant_device, f->tenant_device_count)
EMIT(emit_containers, f->container, f->container_count)
EMIT(emit_container_devices, f->container_device, f->container_device_count)
