/* The parts of allot-scheduler, which main.c starts and stops. Main thread only. */
#pragma once

#include "http/http_server.h"
#include "net/loop.h"
#include "scheduler/cluster/cluster.h"
#include "scheduler/cluster/sched_audit.h"
#include "scheduler/service/config.h"
#include "scheduler/service/authorize.h"
#include "scheduler/service/metrics.h"
#include "scheduler/util/token_bucket.h"
#include "scheduler/webhook/claim_reviews.h"
#include "scheduler/webhook/template_sweep.h"
#include "scheduler/webhook/webhook.h"

struct scheduler {
	struct config config;
	struct loop *loop;
	struct webhook_terms webhook;
	struct claim_reviews *claim_reviews;   /* NULL if make_claims is off */
	struct template_sweep *template_sweep; /* NULL if make_claims is off */
	struct cluster *cluster;               /* NULL if kube_api is off */
	struct sched_audit *audit;             /* NULL if audit_log is off */
	struct metrics metrics;
	struct authorizer authorizer;
	struct token_bucket explaining; /* rate limit of explanations, in nodes examined */
	char retry_after[24];           /* Retry-After of the answer being made */
};
