#include "node/plugin/vcuda_tell.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "kube/patch.h"
#include "node/node.h"
#include "node/tenant.h"

#define CARDS_MAX 96 /* bytes: REGION_MAX_DEVICES numbers */
#define PATH_MAX_BYTES 640

bool vcuda_tell_cards(const struct claim *claim, char *ret, size_t size)
{
	const struct tenant_terms *terms = claim_terms(claim);
	size_t at = 0;
	for (unsigned i = 0; i < terms->device_count; i++) {
		const struct card *card = terms->device[i].card;
		if (!card || at >= size)
			return false;
		at += (size_t)snprintf(ret + at, size - at, "%s%u", i ? "," : "",
				       card->info.minor_known ? card->info.minor : card->index);
	}
	return at > 0 && at < size;
}

static void told(void *data, const struct kube_answer *answer)
{
	/* A pod that is gone has nothing any more. */
	if (answer->err.code && answer->status != 404)
		log_warning("device plugin: what a pod got can't be written to it: %s",
			    answer->err.text);
}

void vcuda_tell(struct kube_client *client, const struct vcuda_telling *t)
{
	char name[VCUDA_TELL_MAX][sizeof(VCUDA_INDEX) + 4], cards[VCUDA_TELL_MAX][CARDS_MAX];
	struct patch_pair pair[VCUDA_TELL_MAX + 1];
	char path[PATH_MAX_BYTES];
	size_t pairs = 0;
	for (size_t i = 0; i < t->count && i < VCUDA_TELL_MAX; i++) {
		if (!t->claim[i] || !vcuda_tell_cards(t->claim[i], cards[i], sizeof(cards[i])))
			continue;
		snprintf(name[i], sizeof(name[i]), VCUDA_INDEX "%u", (unsigned char)i);
		pair[pairs++] = (struct patch_pair){ name[i], cards[i] };
	}
	pair[pairs++] = (struct patch_pair){ VCUDA_ASSIGNED, t->is_assigned ? "true" : "false" };
	cleanup_free char *body = patch_metadata(pair, pairs, NULL, 0, NULL);
	snprintf(path, sizeof(path), "/api/v1/namespaces/%s/pods/%s", t->pod->pod_namespace,
		 t->pod->name);
	struct kube_request request = {
		.method = "PATCH", .path = path, .type = KUBE_MERGE_PATCH, .body = body
	};
	if (!body || !kube_call_start(client, &request, NULL, told, NULL))
		log_warning("device plugin: what a pod got can't be written to it: no memory");
}
