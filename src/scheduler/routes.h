/*
 * The HTTP routes of allot-scheduler: the webhook, kube-scheduler's extender, health checks and monitoring. routes.c has one
 * table row per route. Main thread only.
 */
#pragma once

#include "scheduler/service/scheduler.h"

/* Handles all requests to the servers; `data` is a struct scheduler. */
void routes_handle(void *data, const struct server_request *request, struct server_answer *ret);
/* Implements `quota` of the webhook's terms; `data` is a struct scheduler. */
bool routes_quota(void *data, const char *name, struct webhook_quota *ret);
