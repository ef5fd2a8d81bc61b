/*
 * The cluster's web page (setting web_listen): cards of all nodes with what is promised of them, pods with where they are, and
 * why others wait. It changes nothing. Main thread only.
 *
 *     GET /  and what it needs     the page's files, to everyone
 *     GET /api/rights              what the request's token allows
 *     GET /api/state?VIEW          what a view shows (view.h, state.h), once
 *     GET /api/history             how much was promised in the last ten minutes (past.h)
 *     GET /events?VIEW             what a view shows, as it changes (events.h)
 */
#pragma once

#include "scheduler/service/scheduler.h"

struct cluster_page;

/* What the settings together must not be. Pure. */
int cluster_page_check(const struct config *config, struct error *err);

/* Listens; the cluster must be there. *ret is NULL where web_listen is off. */
int cluster_page_start(struct scheduler *scheduler, struct cluster_page **ret, struct error *err);
/* NULL is fine; returns NULL. */
struct cluster_page *cluster_page_stop(struct cluster_page *page);
