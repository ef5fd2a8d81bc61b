/*
 * Elects one leader among the replicas by a Lease, using election.h and the API. The other replicas watch the lease, so that
 * a released lease is taken at once. Call from the client's thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kube/client/kube_client.h"
#include "scheduler/cluster/election.h"

struct leader;

struct leader_terms {
	struct kube_client *client; /* must outlive the leader */
	const char *in_namespace,
		*name; /* names of the Lease; these and the identity are kept, not copied */
	struct election_terms election;
	/*
	 * Called when this replica begins or ceases to lead. When it ceases, the callback must end everything that would be in
	 * the way of the next leader before it returns. Between calls, leader_may_act() has the current state.
	 */
	void (*changed)(void *data, bool is_leader);
	/* Called at the end of leader_release(), whether or not it succeeded; may be NULL. */
	void (*released)(void *data);
	void *data;
};

/* Makes an identity that no other process has or had: the host's name and random digits. */
#define LEADER_IDENTITY_MAX 128
void leader_make_identity(char text[LEADER_IDENTITY_MAX]);

/* Starts the election. `changed` is not called before this function has returned. Returns 0 or -ENOMEM. */
int leader_start(const struct leader_terms *terms, struct leader **ret);
/* Stops without releasing the lease, which then expires. Calls nobody back. `leader` may be NULL; returns NULL. */
struct leader *leader_free(struct leader *leader);

/*
 * Returns true while this replica leads. The result turns false before any other replica can lead, even if we have not heard
 * of that yet.
 */
bool leader_may_act(const struct leader *leader);

/* Ends in order, within LEADER_RELEASE_LIMIT_NS: calls `changed` if we lead, releases the lease, then calls `released`. */
#define LEADER_RELEASE_LIMIT_NS (UINT64_C(3) * 1000000000)
void leader_release(struct leader *leader);

/* Returns the known holder of the lease, "" if none. Valid until control returns to the loop. */
const char *leader_holder(const struct leader *leader);
