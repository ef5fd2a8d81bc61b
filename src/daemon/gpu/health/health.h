/*
 * Health of the cards. A thread waits for the driver's fault reports, and asks each card once a second for its memory use, to
 * check that it answers. The main thread decides whether a card is unhealthy (health_policy.h), logs it, and calls the
 * subscribers. An unhealthy or cordoned card takes no new tenants; present tenants go on.
 *
 * A cordon is an order to take no new tenants. Cordons by a user's request outlive the daemon (file "cordoned" in the run
 * directory); those in the settings last while they are in the settings. Main thread only.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "policy/safety/health_policy.h"

struct node;
struct card;
struct health_watch;

/* A callback: called when the card's health or cordon has changed. */
typedef void (*health_handler)(void *data, struct card *card);

/*
 * Starts the thread. Call after the cards are open. If the settings turn health off, *ret is not written, and all cards count
 * as healthy.
 */
int health_start(struct node *node, struct health_watch **ret, struct error *err);
/* Stops the thread after the call in progress. NULL is allowed; returns NULL. */
struct health_watch *health_stop(struct health_watch *watch);

/*
 * Gives the card's used memory by the driver's last answer. False if any card did not answer in the last round, that round is
 * too long ago, or `watch` is NULL.
 */
bool health_used_bytes(const struct health_watch *watch, unsigned card, uint64_t now_ns,
		       uint64_t *ret_bytes);

/*
 * True if any card, when last asked, had worked for more than a tenth of the driver's last sampling period. Also true if that
 * is unknown, or `watch` is NULL. Thread safe.
 */
bool health_is_any_busy(const struct health_watch *watch);

/* Subscribes to changes of all cards. Returns -ENOSPC if there are too many subscribers. */
int health_subscribe(struct node *node, health_handler handler, void *data, struct error *err);
void health_unsubscribe(struct node *node, health_handler handler, void *data);

/* health_check_accepts() returns 0, -EBUSY (cordoned) or -EIO (unhealthy), with the reason. */
bool health_accepts_tenants(const struct card *card);
int health_check_accepts(const struct card *card, struct error *err);

/* Loads the cordons from the settings and the file. Returns -EINVAL if the settings name an unknown card. */
int cordon_load(struct node *node, struct error *err);
/*
 * Sets or removes a cordon by a user's request. Removing one also forgets a reported fault. Returns -EPERM if the settings
 * cordon the card, or an -errno if the file cannot be written; nothing has changed then.
 */
int cordon_set(struct node *node, struct card *card, bool cordoned, struct error *err);
