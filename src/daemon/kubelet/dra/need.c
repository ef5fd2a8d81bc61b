#include "daemon/kubelet/dra/need.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/containers/claims/claims.h"
#include "daemon/kubelet/devices/dra_key.h"
#include "kube/util/object.h"

#define KNOWN_LOOKS 4 /* An answer is reused for this many calls of dra_need_of() for a claim. */

struct known {
	TAILQ_ENTRY(known) link;
	struct dra_need *need;
	struct dra_key key;
	struct kube_call *get; /* the call that reads the ResourceClaim; NULL: answered */
	uint64_t requested_ns;
	enum claim_need answer;
};

struct dra_need {
	struct kube_client *client;
	uint64_t known_ns;
	TAILQ_HEAD(, known) list;
};

static void forget(struct known *k)
{
	TAILQ_REMOVE(&k->need->list, k, link);
	kube_call_drop(k->get);
	free(k);
}

static void claim_received(void *data, const struct kube_answer *reply)
{
	struct known *k = data;
	const char *uid = object_meta_text(reply->object, "uid");
	k->get = NULL;
	if (reply->status == 404 || (uid && strcmp(uid, k->key.name.uid) != 0))
		k->answer = CLAIM_UNWANTED;
	else
		k->answer = uid ? CLAIM_WANTED : CLAIM_UNKNOWN;
}

static struct known *find(struct dra_need *need, const char *uid, uint64_t now_ns)
{
	struct known *k, *next, *found = NULL;
	for (k = TAILQ_FIRST(&need->list); k; k = next) {
		next = TAILQ_NEXT(k, link);
		if (now_ns - k->requested_ns > need->known_ns)
			forget(k);
		else if (!strcmp(k->key.name.uid, uid))
			found = k;
	}
	return found;
}

static void request_claim(struct dra_need *need, const char *key, uint64_t now_ns)
{
	char path[DRA_CLAIM_PATH_MAX];
	struct known *k = calloc(1, sizeof(*k));
	if (!k)
		return;
	*k = (struct known){ .need = need, .requested_ns = now_ns, .answer = CLAIM_UNKNOWN };
	dra_key_parse(key, &k->key);
	dra_claim_path(&k->key.name, path);
	TAILQ_INSERT_TAIL(&need->list, k, link);
	k->get = kube_call_start(need->client,
				 &(struct kube_request){ .method = "GET", .path = path }, NULL,
				 claim_received, k);
	if (!k->get)
		forget(k);
}

enum claim_need dra_need_of(void *data, const struct claim *claim)
{
	struct dra_need *need = data;
	const char *text = claim_terms(claim)->claim.key;
	uint64_t now_ns = clock_now_ns();
	struct dra_key key;
	if (!dra_key_parse(text, &key))
		return CLAIM_UNWANTED;
	/* The name was too long for the key, so the API server cannot be asked. The kubelet will unprepare the claim. */
	if (!*key.name.name)
		return CLAIM_WANTED;
	const struct known *k = find(need, key.name.uid, now_ns);
	if (k)
		return k->answer;
	request_claim(need, text, now_ns);
	return CLAIM_UNKNOWN;
}

struct dra_need *dra_need_new(struct kube_client *client, uint64_t look_ns)
{
	struct dra_need *need = calloc(1, sizeof(*need));
	if (!need)
		return NULL;
	need->client = client;
	need->known_ns = KNOWN_LOOKS * look_ns;
	TAILQ_INIT(&need->list);
	return need;
}

struct dra_need *dra_need_free(struct dra_need *need)
{
	if (!need)
		return NULL;
	while (!TAILQ_EMPTY(&need->list))
		forget(TAILQ_FIRST(&need->list));
	free(need);
	return NULL;
}
