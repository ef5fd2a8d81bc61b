/*
 * The HTTP routes of allot-scheduler: the webhook, kube-scheduler's extender, health checks, monitoring; routes.c has a row for
 * each. Main thread only.
 */
#pragma once

#include "scheduler/service/scheduler.h"

/* Handles every request; `data` is a struct scheduler. */
void routes_handle(void *data, const struct server_request *request, struct server_answer *ret);
/* The callback webhook_terms.quota; `data` is a struct scheduler. */
bool routes_quota(void *data, const char *name, struct webhook_quota *ret);
