/*
 * Health of the cards. A thread waits for the driver's fault reports, and asks each card once a second for its memory use, to
 * see whether the card answers. The main thread decides (health_policy.h), logs, and reports changes to subscribers. An
 * unhealthy or cordoned card takes no new tenants; its present tenants continue.
 *
 * Cordons set by hand outlive the daemon (file "cordoned" in the run directory). Cordons of the settings last as long as the
 * settings name them. Call all functions from the main thread.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "policy/safety/health_policy.h"

struct node;
struct card;
struct health_watch;

/* Called when a card's health or cordon has changed; card->health is the new state. */
typedef void (*health_handler)(void *data, struct card *card);

/*
 * Starts the thread. Call after the cards are open. If the settings disable health checks, *ret is NULL and all cards count as
 * healthy.
 */
int health_start(struct node *node, struct health_watch **ret, struct error *err);
/* Stops the thread, after the call in progress. NULL is allowed; returns NULL. */
struct health_watch *health_stop(struct health_watch *watch);

/*
 * Returns the card's memory use from the driver's last answer, without asking the driver. Returns
 * false if there is no answer, if the answer is too old, or if `watch` is NULL.
 */
bool health_used_bytes(const struct health_watch *watch, unsigned card, uint64_t now_ns,
		       uint64_t *ret_bytes);

/* Subscribes to changes of all cards. Returns -ENOSPC if there are too many subscribers. */
int health_subscribe(struct node *node, health_handler handler, void *data);
void health_unsubscribe(struct node *node, health_handler handler, void *data);

/*
 * health_takes_tenants() returns whether the card takes new tenants. health_check_takes() returns 0 if it does; if not, -EBUSY
 * (cordoned) or -EIO (unhealthy), with the reason.
 */
bool health_takes_tenants(const struct card *card);
int health_check_takes(const struct card *card, struct error *err);

/*
 * Loads the cordons from the settings and from the file, when the daemon starts. Returns -EINVAL if
 * the settings name an unknown card.
 */
int cordon_load(struct node *node, struct error *err);
/*
 * Sets or removes a cordon by hand. Removing it also declares the card healthy: a reported fault is
 * forgotten. Returns -EPERM if the settings cordon the card. If the file cannot be written, the
 * change is undone and its -errno is returned.
 */
int cordon_set(struct node *node, struct card *card, bool cordoned, struct error *err);
