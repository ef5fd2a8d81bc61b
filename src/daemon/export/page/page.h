/*
 * The web page (setting web_listen): cards and tenants as they are now, and, with a token for that, changes. Main thread
 * only.
 *
 *     GET /  and what it needs       the page's files (files.h), to everyone
 *     GET /api/rights                what the request's token allows
 *     GET /api/state                 the state (state.h), once
 *     GET /api/history               what was so in the last ten minutes (history.h)
 *     GET /api/topology              as `allot topo --json`
 *     GET /events                    the state as it changes (events.h)
 *     POST /api/set, pause, resume, unqueue       the control protocol's request of that name
 */
#pragma once

#include "base/error.h"

struct node;
struct config;
struct page;

/* What the settings together must not be. Pure. */
int page_check(const struct config *config, struct error *err);

/* Listens. *ret is NULL where web_listen is off. */
int page_start(struct node *node, struct page **ret, struct error *err);
/* NULL is fine; returns NULL. */
struct page *page_stop(struct page *page);
