/*
 * The health of the cards while the daemon runs: a thread waits for the driver's reports of faults, and asks each
 * card for its memory once a second to see whether it answers; the main thread decides (health_policy.h), logs,
 * and tells whoever wants to know. A card that is not well, or that somebody has cordoned, takes no new
 * tenants; those on it go on.
 *
 * Cordons by hand outlive the daemon (file "cordoned" in the run directory), those of the settings are the
 * settings'. Main thread only, but for the thread within.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "policy/safety/health_policy.h"

struct node;
struct card;
struct health_watch;

/* Whether this card is well or cordoned has changed; card->health says what it is now. */
typedef void (*health_handler)(void *data, struct card *card);

/* After the cards are open. *ret is NULL where the settings say that nothing is watched: all are well then. */
int health_start(struct node *node, struct health_watch **ret, struct error *err);
/* Waits for the call under way. NULL is fine; returns NULL. */
struct health_watch *health_stop(struct health_watch *watch);

/*
 * What the driver said last that the card has in use, without asking it. False: it is not known, or an old answer; or
 * `watch` is NULL.
 */
bool health_used_bytes(const struct health_watch *watch, unsigned card, uint64_t now_ns,
		       uint64_t *ret_bytes);

/* From now on, of all cards. -ENOSPC: there are too many that want to know. */
int health_subscribe(struct node *node, health_handler handler, void *data);
void health_unsubscribe(struct node *node, health_handler handler, void *data);

/* Does the card take new tenants? If not, -EBUSY (cordoned) or -EIO (not well) with the reason. */
bool health_takes_tenants(const struct card *card);
int health_check_takes(const struct card *card, struct error *err);

/* At start: what the settings and the file say. -EINVAL: the settings name what is no card. */
int cordon_load(struct node *node, struct error *err);
/*
 * By hand. Taking a cordon away also says that the card is well: a fault that was reported is forgotten. -EPERM: the
 * settings cordon it. What can't be written down is undone, and -errno.
 */
int cordon_set(struct node *node, struct card *card, bool cordoned, struct error *err);
