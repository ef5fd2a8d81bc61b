/* The HTTP routes of allot-scheduler: webhook, kube-scheduler's extender, health checks and monitoring. Main thread only. */
#pragma once

#include "scheduler/service/scheduler.h"

/* Handles every request; `data` is a struct scheduler. */
void routes_handle(void *data, const struct server_request *request, struct server_answer *ret);
/* The callback webhook_terms.quota; `data` is a struct scheduler. */
bool routes_quota(void *data, const char *name, struct webhook_quota *ret);
