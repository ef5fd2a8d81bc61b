/*
 * The cluster's web page (setting web_listen): all nodes' cards and how much of them is assigned, the pods, and why pods wait.
 * Changes nothing. Main thread only.
 *
 *     GET / and its files          the page's files, for everyone
 *     GET /api/rights              what the request's token allows
 *     GET /api/state?VIEW          what a view shows (view.h, state.h), once
 *     GET /api/history             how much was assigned in the last ten minutes (history.h)
 *     GET /events?VIEW             what a view shows, as it changes (events.h)
 */
#pragma once

#include "scheduler/service/scheduler.h"

struct cluster_page;

/* Checks that the page's settings fit together. Returns 0 or a negative error. Pure. */
int cluster_page_check(const struct config *config, struct error *err);

/* Starts to listen. *ret is NULL if scheduler->cluster (to be set before) is NULL, or if web_listen is "off". */
int cluster_page_start(struct scheduler *scheduler, struct cluster_page **ret, struct error *err);
/* `page` may be NULL; returns NULL. */
struct cluster_page *cluster_page_stop(struct cluster_page *page);
