/*
 * The web page (setting web_listen) shows cards and tenants. A request with the token for changes can also change tenants. Main
 * thread only.
 *
 *     GET /  and its files           the page's files (files.h), for everyone
 *     GET /api/rights                what the request's token allows
 *     GET /api/state                 the current state (state.h), once
 *     GET /api/history               the last ten minutes (history.h)
 *     GET /api/topology              as `allot topo --json`
 *     GET /events                    the state as it changes (events.h)
 *     POST /api/set, pause, resume, unqueue       the control protocol's request of that name
 */
#pragma once

#include "base/error.h"

struct node;
struct config;
struct page;

/* Checks the settings web_*. Pure. */
int page_check(const struct config *config, struct error *err);

/* Starts to listen. If web_listen is off, returns 0 and leaves *ret as it is. */
int page_start(struct node *node, struct page **ret, struct error *err);
/* Stops listening. NULL is allowed; returns NULL. */
struct page *page_stop(struct page *page);
