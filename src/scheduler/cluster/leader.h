/*
 * One leader among the replicas, by a Lease: election.h over the API. A watch shows the lease to those that do not lead, so
 * that one that is released is taken at once. The client's thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kube/client/client.h"
#include "scheduler/cluster/election.h"

struct leader;

struct leader_terms {
	struct kube_client *client; /* must be there, longer than the leader */
	const char *in_namespace,
		*name; /* of the Lease; these and the identity are kept, not copied */
	struct election_terms election;
	/*
	 * We lead now, or no longer: then nothing may be under way that the next leader would not expect when this returns.
	 * Between two such calls leader_may_act() says at each moment how it is.
	 */
	void (*changed)(void *data, bool is_leader);
	void (*released)(
		void *data); /* after leader_release(): whether or not that was possible; NULL: not wanted */
	void *data;
};

/* For an identity that no other process has, or had: the host's name and random digits. */
#define LEADER_IDENTITY_MAX 128
void leader_make_identity(char text[LEADER_IDENTITY_MAX]);

/* `changed` is not called in here. -ENOMEM. */
int leader_start(const struct leader_terms *terms, struct leader **ret);
/* Without a word to anybody: the lease expires. NULL is fine; returns NULL. */
struct leader *leader_free(struct leader *leader);

/* false from a time on that is before any other may lead, even where nothing was heard of that yet. */
bool leader_may_act(const struct leader *leader);

/* An orderly end: `changed` if we lead, the lease is let go, then `released`, within LEADER_RELEASE_LIMIT_NS. */
#define LEADER_RELEASE_LIMIT_NS (UINT64_C(3) * 1000000000)
void leader_release(struct leader *leader);

/* Who holds the lease, as far as is known; "": nobody. Valid until the loop goes on. */
const char *leader_holder(const struct leader *leader);
