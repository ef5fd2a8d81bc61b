/*
 * Elects one leader among the replicas by a Lease (election.h). The other replicas watch the Lease, so one of them takes a
 * released Lease at once. Call from the client's thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kube/client/kube_client.h"
#include "scheduler/cluster/election.h"

struct leader;

struct leader_terms {
	struct kube_client *client;
	const char *in_namespace,
		*name; /* name of the Lease; name, namespace and identity are kept, not copied */
	struct election_terms election;
	/*
	 * Called when this replica begins or ceases to lead; when it ceases, stop all work that would conflict with the next
	 * leader's. The call may be late: ask leader_may_act() before each action.
	 */
	void (*changed)(void *data, bool is_leader);
	/* called when leader_release() has released the lease, or could not; may be NULL */
	void (*released)(void *data);
	void *data;
};

/* Makes an identity that no other process has or had: the hostname and random digits. */
#define LEADER_IDENTITY_MAX 128
void leader_make_identity(char text[LEADER_IDENTITY_MAX]);

/* Starts the election; calls nothing back before returning. Returns 0 or -ENOMEM. */
int leader_start(const struct leader_terms *terms, struct leader **ret);
/* Lets the lease expire instead of releasing it, and calls nothing back. NULL is allowed; returns NULL. */
struct leader *leader_free(struct leader *leader);

/* Whether this replica leads. Turns false before another replica can lead, even if this replica receives no more updates. */
bool leader_may_act(const struct leader *leader);

/* If this replica leads, calls `changed` and releases the lease. Then, within LEADER_RELEASE_LIMIT_NS, calls `released`. */
#define LEADER_RELEASE_LIMIT_NS (UINT64_C(3) * 1000000000)
void leader_release(struct leader *leader);

/* Returns the lease's holder as last seen, or "". Valid until control returns to the loop. */
const char *leader_holder(const struct leader *leader);
