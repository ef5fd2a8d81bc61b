#include "scheduler/service/metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "scheduler/cluster/cluster.h"
#include "scheduler/cluster/sched_audit.h"
#include "scheduler/service/config.h"
#include "scheduler/service/issuer.h"
#include "scheduler/service/metrics_cluster.h"

static const char *const verbs[VERB_COUNT] = {
	[VERB_WEBHOOK] = "webhook", [VERB_FILTER] = "filter", [VERB_PRIORITIZE] = "prioritize",
	[VERB_PREEMPT] = "preempt", [VERB_BIND] = "bind",
};

static void write_head(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void write_verbs(FILE *out, const struct metrics *m)
{
	write_head(out, "allot_scheduler_requests_total", "counter",
		   "Requests by result: good, refused (an error of the client) or failed.");
	for (int i = 0; i < VERB_COUNT; i++) {
		const struct metrics_figures *f = &m->verb[i];
		const struct {
			const char *name;
			uint64_t count;
		} results[] = { { "good", f->good },
				{ "refused", f->refused },
				{ "failed", f->failed } };
		for (size_t k = 0; k < sizeof(results) / sizeof(results[0]); k++)
			fprintf(out,
				"allot_scheduler_requests_total{verb=\"%s\",result=\"%s\"} %" PRIu64
				"\n",
				verbs[i], results[k].name, results[k].count);
	}
	write_head(out, "allot_scheduler_request_seconds_total", "counter",
		   "Time that the main thread spent on requests.");
	for (int i = 0; i < VERB_COUNT; i++)
		fprintf(out, "allot_scheduler_request_seconds_total{verb=\"%s\"} %.9f\n", verbs[i],
			(double)m->verb[i].spent_ns / (double)NSEC_PER_SEC);
}

static void write_expiry(FILE *out, const struct config *config)
{
	int64_t expiry_s;
	if (!strcmp(config->https_listen, "off") ||
	    issuer_expiry(config->tls_certificate, &expiry_s, NULL) < 0)
		return;
	write_head(out, "allot_scheduler_certificate_expires_seconds", "gauge",
		   "When the certificate of https_listen expires, in seconds since 1970.");
	fprintf(out, "allot_scheduler_certificate_expires_seconds %" PRId64 "\n", expiry_s);
}

static void write_evictions(FILE *out, const struct cluster *cluster)
{
	const struct evictor_counts counts = cluster_evictor_counts(cluster);
	const struct {
		const char *name, *help;
		uint64_t count;
	} rows[] = {
		{ "allot_scheduler_fillers_evicted_total",
		  "Pods, placed by use or of lower priority, that were evicted because other pods "
		  "needed their GPUs.",
		  counts.evicted },
		{ "allot_scheduler_fillers_refused_total",
		  "Evictions, of pods placed by use or of lower priority, that a disruption budget "
		  "refused.",
		  counts.refused },
		{ "allot_scheduler_fillers_failed_total",
		  "Evictions, of pods placed by use or of lower priority, that failed.",
		  counts.failed },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		write_head(out, rows[i].name, "counter", rows[i].help);
		fprintf(out, "%s %" PRIu64 "\n", rows[i].name, rows[i].count);
	}
}

static void write_events(FILE *out, const struct cluster *cluster)
{
	const struct recorder_counts counts = cluster_recorder_counts(cluster);
	write_head(out, "allot_scheduler_filter_events_total", "counter",
		   "Events of filter: sent, or kept back because the pod had one a moment ago or there "
		   "were too many.");
	fprintf(out,
		"allot_scheduler_filter_events_total{result=\"sent\"} %" PRIu64
		"\nallot_scheduler_filter_events_total{result=\"kept_back\"} %" PRIu64 "\n",
		counts.sent, counts.suppressed);
}

static void write_audit(FILE *out, const struct sched_audit *audit)
{
	const struct sched_audit_figures figures = sched_audit_figures(audit);
	if (!audit)
		return;
	write_head(out, "allot_scheduler_audit_lines_total", "counter",
		   "Lines written to the audit log.");
	fprintf(out, "allot_scheduler_audit_lines_total %" PRIu64 "\n", figures.lines);
	write_head(
		out, "allot_scheduler_audit_lines_lost_total", "counter",
		"Lines of the audit log that could not be written, for example because the disk is full.");
	fprintf(out, "allot_scheduler_audit_lines_lost_total %" PRIu64 "\n", figures.lost);
}

char *metrics_page(const struct metrics *m, const struct config *config,
		   const struct sched_audit *audit, struct cluster *cluster)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	if (!out)
		return NULL;
	write_verbs(out, m);
	write_head(out, "allot_scheduler_pods_denied_total", "counter",
		   "Pods that the webhook did not let in.");
	fprintf(out, "allot_scheduler_pods_denied_total %" PRIu64 "\n", m->denied);
	write_head(out, "allot_scheduler_pods_changed_total", "counter",
		   "Pods that the webhook let in with changes.");
	fprintf(out, "allot_scheduler_pods_changed_total %" PRIu64 "\n", m->changed);
	write_expiry(out, config);
	write_audit(out, audit);
	if (cluster) {
		metrics_write_model(out, cluster_model(cluster));
		write_evictions(out, cluster);
		write_events(out, cluster);
	}
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}
