/*
 * Handles the requests of people and container engines for claims with keys "cdi/<name>" (docs/reference/protocol.md). Claims
 * with other keys belong to the kubelet's plugins: requests can list but not change them.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "daemon/api/request_devices.h"
#include "daemon/api/request_handlers.h"
#include "daemon/api/session.h"
#include "daemon/containers/claims/claims.h"
#include "daemon/containers/claims/injection.h"
#include "daemon/gpu/health/health.h"
#include "daemon/space/space_groups.h"
#include "daemon/state/elastic_terms.h"
#include "daemon/state/tenant_state.h"

#define KEY_PREFIX "cdi/"

struct key {
	char text[CLAIM_KEY_MAX];
};

static int read_key(const json_t *request, struct key *ret, const char **ret_name, struct error *err)
{
	const char *name = NULL;
	int r = json_read_string(request, "name", &name, err);
	if (r == 0)
		r = error_set(err, EINVAL, "name: missing");
	if (r >= 0)
		r = parse_name(name, err) < 0 ? error_add(err, -EINVAL, "name") : 0;
	if (r < 0)
		return r;
	snprintf(ret->text, sizeof(ret->text), KEY_PREFIX "%s", name);
	*ret_name = name;
	return 0;
}

static int find_own(struct session *session, const json_t *request, struct claim **ret,
		    struct error *err)
{
	const char *name;
	struct key key;
	int r = read_key(request, &key, &name, err);
	if (r < 0)
		return r;
	struct claim *claim = claims_find(session->node->claims, key.text);
	if (!claim)
		return error_set(err, ENOENT,
				 "there is no device '%s': allot cdi list shows the devices", name);
	if (claim_terms(claim)->uid != session->uid && !session->is_admin)
		return error_set(
			err, EPERM,
			"device '%s' belongs to uid %u: only its owner, root and members of group allot may remove it",
			name, (unsigned)claim_terms(claim)->uid);
	*ret = claim;
	return 0;
}

static int describe_injection(struct session *session, const struct claim *claim, json_t *reply,
			      struct error *err)
{
	cleanup_injection struct injection in = { 0 };
	int r = injection_make(session->node->claims, claim, &in, err);
	if (r < 0)
		return r;
	json_object_set_new(reply, "key", json_string(claim_terms(claim)->claim.key));
	json_object_set_new(reply, "injection", injection_to_json(&in));
	request_describe_tenant(claim->tenant, reply);
	return 0;
}

static json_t *device_to_json(const struct claim *claim, unsigned device)
{
	const struct tenant_device_terms *d = &claim_terms(claim)->device[device];
	json_t *memory = d->promise.memory_given ? json_integer((json_int_t)d->promise.quota_bytes)
						 : json_null();
	return json_pack("{s:o, s:s, s:o, s:f, s:f, s:o}", "index",
			 d->card ? json_integer(d->card->index) : json_null(), "uuid",
			 claim_uuid(claim, device), "memory_bytes", memory, "cores_pct",
			 d->promise.cores_pct, "cores_limit_pct", d->promise.limit_pct, "slots",
			 slots_to_json(&d->slots));
}

static json_t *claim_to_json(const struct claim *claim)
{
	const struct tenant_terms *terms = claim_terms(claim);
	const char *why = claim_parked_reason(claim);
	json_t *devices = json_array();
	for (unsigned i = 0; i < terms->device_count; i++)
		json_array_append_new(devices, device_to_json(claim, i));
	return json_pack("{s:s, s:s, s:s, s:I, s:I, s:b, s:b, s:s, s:i, s:o, s:o}", "key",
			 terms->claim.key, "tenant", terms->name, "id", terms->id, "uid",
			 (json_int_t)terms->uid, "made_s", (json_int_t)claim->made_s,
			 "while_wanted", terms->claim.while_wanted, "controlled",
			 !terms->claim.is_uncontrolled, "on_full", on_full_name(terms->on_full),
			 "processes", claim->tenant ? (int)claim->tenant->process_count : 0,
			 "parked", *why ? json_clean_string(why) : json_null(), "devices", devices);
}

static int read_devices(struct node *node, const json_t *request, struct claim_request *ret,
			struct error *err)
{
	struct device_request list[REGION_MAX_DEVICES] = { 0 };
	int count = request_choose_devices(node, request, list, err);
	if (count < 0)
		return count;
	for (int i = 0; i < count; i++) {
		ret->device[i].card = list[i].card;
		ret->device[i].terms = list[i].terms;
	}
	ret->device_count = (unsigned)count;
	return 0;
}

static int read_claim(struct session *session, const json_t *request, struct claim_request *ret,
		      struct error *err)
{
	int r = request_read_priority(request, &ret->priority, err);
	if (r >= 0)
		r = request_read_on_full(request, &ret->on_full, err);
	if (r >= 0)
		r = elastic_choice_from_json(request, &ret->elastic, err);
	if (r >= 0)
		r = space_read_request(request, &ret->sharing, err);
	if (r >= 0)
		r = request_read_swap_arena(request, &ret->swap_arena_bytes, err);
	if (r < 0)
		return r;
	ret->uid = session->uid;
	ret->namespace_name = "";
	return read_devices(session->node, request, ret, err);
}

int request_claim(struct session *session, const json_t *request, json_t *reply, struct error *err)
{
	struct claims *claims = session->node->claims;
	struct claim_request wanted = { 0 };
	struct claim *claim;
	struct key key;
	int r = read_key(request, &key, &wanted.tenant, err);
	if (r >= 0)
		r = session_check_tenants(session, err);
	/* Fail if the name is in use: a person chose it, so the daemon must not choose another name instead. */
	if (r >= 0)
		r = claims_check_name(session->node, wanted.tenant, err);
	if (r < 0)
		return r;
	wanted.key = key.text;
	r = read_claim(session, request, &wanted, err);
	if (r >= 0)
		r = claims_allocate(claims, &wanted, &claim, err);
	if (r < 0)
		return r;
	r = describe_injection(session, claim, reply, err);
	if (r < 0) {
		claims_undo(claims, key.text, "what its container needs can't be injected");
		return r;
	}
	request_warn_of_overcommit(claim->tenant, reply);
	return 0;
}

int request_injection(struct session *session, const json_t *request, json_t *reply,
		      struct error *err)
{
	struct claim *claim;
	int r = find_own(session, request, &claim, err);
	return r < 0 ? r : describe_injection(session, claim, reply, err);
}

int request_release(struct session *session, const json_t *request, json_t *reply, struct error *err)
{
	struct claim *claim;
	bool force = false;
	struct key key;
	int r = find_own(session, request, &claim, err);
	if (r >= 0)
		r = json_read_bool(request, "force", &force, err);
	if (r < 0)
		return r;
	unsigned processes = claim->tenant ? tenant_living_count(claim->tenant) : 0;
	strcpy(key.text, claim_terms(claim)->claim.key);
	if (processes && !force)
		return error_set(
			err, EBUSY,
			"device '%s' is in use by %u process%s: end the containers that use the device, or add --force",
			key.text + strlen(KEY_PREFIX), processes, processes == 1 ? "" : "es");
	r = claims_release(session->node->claims, key.text, "released by request", err);
	if (r >= 0)
		json_object_set_new(reply, "ending", json_boolean(processes > 0));
	return r;
}

int request_claims(struct session *session, const json_t *request, json_t *reply, struct error *err)
{
	json_t *list = json_array();
	for (struct claim *c = claims_first(session->node->claims); c; c = claims_next(c))
		json_array_append_new(list, claim_to_json(c));
	json_object_set_new(reply, "claims", list);
	return 0;
}
