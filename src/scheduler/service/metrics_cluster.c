#include "scheduler/service/metrics_cluster.h"

#include <inttypes.h>

#include "base/clock.h"

#define ZONE "zone=\"vGPU\"" /* a label of all HAMi metrics */

/* Escapes the value as Prometheus' text format requires. */
static void write_label(FILE *out, const char *name, const char *value)
{
	fprintf(out, ",%s=\"", name);
	for (const char *c = value; *c; c++)
		if (*c == '\n')
			fputs("\\n", out);
		else
			fprintf(out, "%s%c", *c == '"' || *c == '\\' ? "\\" : "", *c);
	fputc('"', out);
}

static void write_number_label(FILE *out, const char *name, uint64_t value)
{
	fprintf(out, ",%s=\"%" PRIu64 "\"", name, value);
}

static void write_head(FILE *out, const char *name, const char *help)
{
	fprintf(out, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name);
}

static double memory_limit(const struct place_card *c)
{
	return (double)c->memory_total_bytes;
}

static double memory_used(const struct place_card *c)
{
	return (double)c->memory_used_bytes;
}

static double memory_ratio(const struct place_card *c)
{
	return c->memory_total_bytes ? memory_used(c) / memory_limit(c) : 0;
}

static double cores_limit(const struct place_card *c)
{
	return (double)c->cores_total_mpct / MPCT;
}

static double cores_used(const struct place_card *c)
{
	return (double)c->cores_used_mpct / MPCT;
}

static double shared(const struct place_card *c)
{
	return c->slots_used;
}

static const struct card_row {
	const char *name;
	/* whether rows have these labels besides node, UUID and index */
	bool has_type, has_cores, has_limit;
	double (*value)(const struct place_card *card);
	const char *help;
} card_rows[] = {
	{ "hami_gpu_memory_limit_bytes", true, false, false, memory_limit,
	  "GPU memory that can be assigned to pods, in bytes." },
	{ "hami_gpu_memory_allocated_bytes", true, true, false, memory_used,
	  "GPU memory that is assigned to pods or reserved for them, in bytes." },
	{ "hami_node_gpu_memory_allocated_ratio", false, false, false, memory_ratio,
	  "Fraction of the GPU's memory that is assigned or reserved, 0 to 1." },
	{ "hami_gpu_core_limit_ratio", true, false, false, cores_limit,
	  "Percent of the GPU's compute time that can be assigned to pods." },
	{ "hami_gpu_core_allocated_ratio", true, false, false, cores_used,
	  "Percent of the GPU's compute time that is assigned to pods." },
	{ "hami_gpu_shared_count", true, false, false, shared, "Containers that share the GPU." },
	{ "hami_node_gpu_overview", true, true, true, memory_used,
	  "GPU memory that is assigned, in bytes. Labels add the assigned percent of its time "
	  "(device_cores) and its total memory in MiB (device_memory_limit)." },
};

static double use_now(const struct model_card_view *v)
{
	return v->use->now_pct;
}

static double use_peak(const struct model_card_view *v)
{
	return v->use->peak_pct;
}

static double borrowed(const struct model_card_view *v)
{
	return (double)v->borrowed_pct;
}

static double cooldown_for(const struct model_card_view *v)
{
	return (double)v->cooldown_for_ns / (double)NSEC_PER_SEC;
}

/* For cards whose use is measured, which needs the setting place_by_use. */
static const struct use_row {
	const char *name;
	double (*value)(const struct model_card_view *view);
	const char *help;
} use_rows[] = {
	{ "allot_scheduler_card_used_ratio", use_now,
	  "Percent of the GPU's time that pods used over the last minute, pods placed by use "
	  "excluded." },
	{ "allot_scheduler_card_used_peak_ratio", use_peak,
	  "90th percentile of card_used_ratio over the last minutes. Pods are placed by use by this "
	  "value." },
	{ "allot_scheduler_card_borrowed_ratio", borrowed,
	  "Percent of the GPU's time that pods placed by use requested." },
	{ "allot_scheduler_card_shut_seconds", cooldown_for,
	  "Seconds until the GPU takes pods placed by use again, after such pods were evicted from "
	  "it; 0: it takes them now." },
};

struct writing {
	FILE *out;
	const struct card_row *card;
	const struct use_row *use;
	const struct share_row *share;
};

static void write_card(void *data, const struct model_card_view *view)
{
	const struct writing *w = data;
	const struct place_card *c = view->card;
	fprintf(w->out, "%s{" ZONE, w->card->name);
	write_label(w->out, "node", view->node);
	write_label(w->out, "device_uuid", c->uuid);
	write_number_label(w->out, "device_index", view->index);
	if (w->card->has_cores)
		write_number_label(w->out, "device_cores", (uint64_t)cores_used(c));
	if (w->card->has_limit)
		write_number_label(w->out, "device_memory_limit", c->memory_total_bytes >> MIB_BITS);
	if (w->card->has_type)
		write_label(w->out, "device_type", c->type);
	fprintf(w->out, "} %.17g\n", w->card->value(c));
}

static void write_use(void *data, const struct model_card_view *view)
{
	const struct writing *w = data;
	if (!view->use)
		return;
	/* write_label() begins with a comma, which the first label must not have. */
	fprintf(w->out, "%s{device_index=\"%u\"", w->use->name, view->index);
	write_label(w->out, "node", view->node);
	write_label(w->out, "device_uuid", view->card->uuid);
	fprintf(w->out, "} %.17g\n", w->use->value(view));
}

static double share_memory(const struct model_share_view *s)
{
	return (double)(s->memory_mib << MIB_BITS);
}

static double share_cores(const struct model_share_view *s)
{
	return s->cores_pct;
}

static const struct share_row {
	const char *name;
	double (*value)(const struct model_share_view *share);
	const char *help;
} share_rows[] = {
	{ "hami_vgpu_memory_allocated_bytes", share_memory,
	  "Memory of the device that the container has." },
	{ "hami_vgpu_core_allocated_ratio", share_cores,
	  "Percent of the device's time that the container has." },
};

static void write_share(void *data, const struct model_share_view *view)
{
	const struct writing *w = data;
	fprintf(w->out, "%s{" ZONE, w->share->name);
	write_label(w->out, "namespace", view->pod_namespace);
	write_label(w->out, "node", view->node);
	write_label(w->out, "pod", view->pod);
	write_number_label(w->out, "container_index", view->container);
	write_label(w->out, "device_uuid", view->card);
	fprintf(w->out, "} %.17g\n", w->share->value(view));
}

struct quota_writing {
	FILE *out;
	const struct request_terms *terms;
	bool is_limit;
};

static void write_quota(void *data, const struct model_quota_view *view)
{
	const struct quota_writing *w = data;
	for (enum quota_kind k = 0; k < QUOTA_KINDS; k++) {
		uint64_t limit = view->limits.most[k], used = view->used.of[k];
		if (!view->limits.has[k] && (w->is_limit || !used))
			continue;
		fprintf(w->out, "hami_resource_quota_%s{" ZONE, w->is_limit ? "limit" : "used");
		write_label(w->out, "namespace", view->pod_namespace);
		write_label(w->out, "quota_name", quota_resource(w->terms, k));
		if (!w->is_limit)
			write_number_label(w->out, "limit", limit);
		fprintf(w->out, "} %" PRIu64 "\n", w->is_limit ? limit : used);
	}
}

static void write_quotas(FILE *out, const struct model *model)
{
	struct quota_writing w = { .out = out, .terms = model_request_terms(model) };
	write_head(out, "hami_resource_quota_used",
		   "Shares that the pods of the namespace have: MiB, percent of GPUs' time, shares "
		   "of GPUs.");
	model_each_quota(model, write_quota, &w);
	w.is_limit = true;
	write_head(out, "hami_resource_quota_limit",
		   "Limits of the namespace's quotas: MiB, percent of GPUs' time, shares of GPUs.");
	model_each_quota(model, write_quota, &w);
}

static void write_counts(FILE *out, const struct model_counts *c)
{
	const struct {
		const char *name, *help;
		size_t value;
	} rows[] = {
		{ "allot_scheduler_nodes", "Nodes that report GPUs.", c->nodes },
		{ "allot_scheduler_nodes_aside",
		  "Nodes that get no pods with GPUs because their list of GPUs is invalid.",
		  c->nodes_rejected },
		{ "allot_scheduler_cards", "GPUs of all nodes.", c->cards },
		{ "allot_scheduler_pods", "Pods that have GPUs.", c->pods },
		{ "allot_scheduler_pods_waiting", "Pods that ask for GPUs and have none.",
		  c->pods_waiting },
		{ "allot_scheduler_reservations",
		  "Pods whose GPUs are reserved while they are bound.", c->reservations },
		{ "allot_scheduler_gangs_waiting", "Gangs of which no pod has GPUs yet.",
		  c->gangs_waiting },
		{ "allot_scheduler_gangs_placed",
		  "Gangs that have as many pods with GPUs as their size.", c->gangs_placed },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		write_head(out, rows[i].name, rows[i].help);
		fprintf(out, "%s %zu\n", rows[i].name, rows[i].value);
	}
}

void metrics_write_model(FILE *out, const struct model *model)
{
	const struct model_counts counts = model_counts(model);
	write_counts(out, &counts);
	for (size_t i = 0; i < sizeof(card_rows) / sizeof(card_rows[0]); i++) {
		struct writing w = { .out = out, .card = &card_rows[i] };
		write_head(out, w.card->name, w.card->help);
		model_each_card(model, write_card, &w);
	}
	for (size_t i = 0; i < sizeof(use_rows) / sizeof(use_rows[0]); i++) {
		struct writing w = { .out = out, .use = &use_rows[i] };
		write_head(out, w.use->name, w.use->help);
		model_each_card(model, write_use, &w);
	}
	for (size_t i = 0; i < sizeof(share_rows) / sizeof(share_rows[0]); i++) {
		struct writing w = { .out = out, .share = &share_rows[i] };
		write_head(out, w.share->name, w.share->help);
		model_each_share(model, write_share, &w);
	}
	write_quotas(out, model);
}
