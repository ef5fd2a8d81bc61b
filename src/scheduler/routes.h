/*
 * What allot-scheduler answers by HTTP: the webhook, kube-scheduler's extender, and who looks after it. One table row a route
 * (routes.c). Main thread only.
 */
#pragma once

#include "scheduler/service/scheduler.h"

/* The server's handler; `data` is a struct scheduler. */
void routes_handle(void *data, const struct server_request *request, struct server_answer *ret);
/* The webhook's terms' `quota`; `data` is the same. */
bool routes_quota(void *data, const char *name, struct webhook_quota *ret);
