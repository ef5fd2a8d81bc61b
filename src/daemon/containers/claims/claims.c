#include "daemon/containers/claims/claims.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <inttypes.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/api/audit/audit.h"
#include "daemon/containers/claims/claims_inside.h"
#include "daemon/space/space_groups.h"
#include "daemon/state/card_promises.h"
#include "daemon/gpu/health/health.h"
#include "daemon/memory/swap/swap_orders.h"
#include "daemon/state/tenant_state.h"

const struct tenant_terms *claim_terms(const struct claim *claim)
{
	return claim->tenant ? &claim->tenant->terms : &claim->parked->as_written.terms;
}

const char *claim_uuid(const struct claim *claim, unsigned device)
{
	return claim->tenant ? claim->tenant->terms.device[device].card->info.uuid_text
			     : claim->parked->as_written.uuid[device];
}

const struct promise *claim_original_promise(const struct claim *claim, unsigned device)
{
	return claim->original ? &claim->original->promise[device]
			       : &claim_terms(claim)->device[device].promise;
}

const char *claim_parked_reason(const struct claim *claim)
{
	return claim->parked ? claim->parked->why : "";
}

int claim_check_in_force(const struct claim *claim, struct error *err)
{
	return claim->tenant ? 0
			     : error_set(err, ENODEV,
					 "claim '%s' could not be restored when allotd started: %s",
					 claim_terms(claim)->claim.key, claim->parked->why);
}

struct claim *claims_first(struct claims *claims)
{
	return TAILQ_FIRST(&claims->list);
}

struct claim *claims_next(struct claim *claim)
{
	return TAILQ_NEXT(claim, link);
}

unsigned claims_count(const struct claims *claims)
{
	return claims->count;
}

struct claims_counts claims_counts(const struct claims *claims)
{
	struct claims_counts counts = claims->counts;
	counts.library_refused = trust_refused(claims->trust);
	return counts;
}

struct claim *claims_find(struct claims *claims, const char *key)
{
	return text_index_find(&claims->keys, key);
}

struct claim *claims_holder(struct claims *claims, const char *uuid, const struct slots *slots,
			    unsigned *ret_slot)
{
	return holders_first(&claims->holders, uuid, slots, ret_slot);
}

struct claim *claims_of_tenant(struct claims *claims, const struct tenant *tenant)
{
	struct claim *c;
	TAILQ_FOREACH(c, &claims->list, link)
		if (c->tenant == tenant)
			return c;
	return NULL;
}

bool claims_has_name(struct node *node, const char *name_or_id)
{
	const struct claims *claims = node->claims;
	const struct claim *c;
	if (node_find_tenant(node, name_or_id))
		return true;
	if (!claims || !claims->parked_count)
		return false;
	TAILQ_FOREACH(c, &claims->list, link)
		if (c->parked && (!strcmp(claim_terms(c)->id, name_or_id) ||
				  !strcmp(claim_terms(c)->name, name_or_id)))
			return true;
	return false;
}

int claims_make_tenant_id(struct node *node, char id[TENANT_ID_MAX], struct error *err)
{
	do {
		uint32_t number;
		if (getrandom(&number, sizeof(number), 0) != sizeof(number))
			return error_set_errno(err, errno, "can't get random numbers");
		snprintf(id, TENANT_ID_MAX, "%08" PRIx32, number);
	} while (claims_has_name(node, id));
	return 0;
}

static struct claim *new_claim(struct claims *claims, int64_t row, uint64_t made_s)
{
	struct claim *claim = calloc(1, sizeof(*claim));
	if (claim)
		*claim = (struct claim){
			.claims = claims, .row = row, .made_s = made_s, .known_ns = clock_now_ns()
		};
	return claim;
}

/* Makes room in `holders`, the table of slots, so that claims_reserve_slots() cannot fail after the commit. */
static int reserve(struct claims *claims, const struct store_claim *fresh)
{
	int r = 0;
	for (unsigned i = 0; r >= 0 && i < fresh->terms.device_count; i++)
		if (slots_count(&fresh->terms.device[i].slots))
			r = holders_reserve(&claims->holders, fresh->uuid[i]);
	return r;
}

int claims_reserve_slots(struct claim *claim)
{
	const struct tenant_terms *terms = claim_terms(claim);
	int r = 0;
	for (unsigned i = 0; r >= 0 && i < terms->device_count; i++)
		r = holders_add(&claim->claims->holders, claim_uuid(claim, i),
				&terms->device[i].slots, claim);
	return r;
}

void claims_release_slots(struct claim *claim)
{
	const struct tenant_terms *terms = claim_terms(claim);
	for (unsigned i = 0; i < terms->device_count; i++)
		holders_remove(&claim->claims->holders, claim_uuid(claim, i),
			       &terms->device[i].slots, claim);
}

static int enlist(struct claim *claim)
{
	int r = claims_reserve_slots(claim);
	if (r < 0) {
		claims_release_slots(claim);
		return r;
	}
	TAILQ_INSERT_TAIL(&claim->claims->list, claim, link);
	claim->claims->count++;
	claim->claims->parked_count += claim->parked != NULL;
	text_index_add(&claim->claims->keys, &claim->by_key, claim_terms(claim)->claim.key, claim);
	return 0;
}

struct claim *claims_add(struct claims *claims, int64_t row, uint64_t made_s, struct tenant *tenant,
			 struct parked *parked)
{
	struct claim *claim = new_claim(claims, row, made_s);
	if (!claim) {
		free(parked);
		return NULL;
	}
	claim->tenant = tenant;
	claim->parked = parked;
	if (enlist(claim) < 0) {
		free(parked);
		free(claim);
		return NULL;
	}
	return claim;
}

static void forget(struct claim *claim)
{
	TAILQ_REMOVE(&claim->claims->list, claim, link);
	text_index_remove(&claim->claims->keys, &claim->by_key);
	claim->claims->count--;
	claim->claims->parked_count -= claim->parked != NULL;
	free(claim->parked);
	free(claim->original);
	free(claim);
}

void claims_end(struct claim *claim, const char *why)
{
	struct node *node = claim->claims->node;
	struct tenant *tenant = claim->tenant;
	char id[TENANT_ID_MAX];
	strcpy(id, claim_terms(claim)->id);
	claims_release_slots(claim);
	forget(claim);
	if (tenant)
		tenant_retire(tenant, why);
	else
		tenant_delete_files(node, TENANT_PLACE_CLAIM, id);
}

struct claims *claims_close(struct claims *claims)
{
	struct claim *c;
	if (!claims)
		return NULL;
	while ((c = TAILQ_FIRST(&claims->list)))
		forget(c);
	holders_clear(&claims->holders);
	loop_remove(claims->timer);
	loop_remove(claims->checkpoint_timer);
	store_close(claims->store);
	free(claims->undone);
	trust_free(claims->trust);
	free(claims);
	return NULL;
}

void claims_describe(const struct claim *claim, struct store_claim *ret)
{
	*ret = (struct store_claim){ .row = claim->row,
				     .made_s = claim->made_s,
				     .terms = *claim_terms(claim) };
	for (unsigned i = 0; i < ret->terms.device_count; i++)
		snprintf(ret->uuid[i], sizeof(ret->uuid[i]), "%s", claim_uuid(claim, i));
	if (!claim->original)
		return;
	ret->original = *claim->original;
	ret->original_count = ret->terms.device_count;
}

int claims_check_key(const char *key, struct error *err)
{
	size_t length = strlen(key);
	for (const char *c = key; *c; c++)
		if (!isgraph((unsigned char)*c))
			return error_set(err, EINVAL,
					 "claim: key: must be printable ASCII without blanks");
	if (!length || length >= CLAIM_KEY_MAX)
		return error_set(err, EINVAL, "claim: key: must be 1 to %d bytes, not %zu",
				 CLAIM_KEY_MAX - 1, length);
	return 0;
}

int claims_check_name(struct node *node, const char *name, struct error *err)
{
	return claims_has_name(node, name)
		       ? error_set(err, EEXIST,
				   "name '%s' is in use: choose another name, or end that tenant first",
				   name)
		       : 0;
}

void claims_make_name(const struct claims *claims, const char *requested, const char *id,
		      char name[REGION_NAME_MAX])
{
	size_t length = 0, most = REGION_NAME_MAX - 1;
	for (; requested[length] && length < most; length++) {
		char c = requested[length];
		name[length] = isalnum((unsigned char)c) || strchr("._-", c) ? c : '-';
	}
	bool is_cut = requested[length] != '\0';
	if (!length)
		length = 1;
	name[length] = '\0';
	if (!isalnum((unsigned char)name[0]) || !*requested)
		name[0] = 'c';
	if (!is_cut && !claims_has_name(claims->node, name))
		return;
	size_t room = most - strlen(id) - 1;
	snprintf(name + (length < room ? length : room), REGION_NAME_MAX - room, "-%s", id);
}

static int decide_device(struct claims *claims, const struct claim_request *request,
			 unsigned device, struct store_claim *fresh, struct error *err)
{
	const struct claim_device_request *d = &request->device[device];
	struct tenant_terms *terms = &fresh->terms;
	if (!d->card)
		return error_set(err, ENODEV, "claim '%s': one of its GPUs is not on this node",
				 request->key);
	for (unsigned i = 0; i < device; i++)
		if (request->device[i].card == d->card)
			return error_set(err, EINVAL, "claim '%s': names GPU %u twice",
					 request->key, d->card->index);
	int r = health_check_accepts(d->card, err);
	if (r < 0)
		return error_add(err, r, "claim '%s'", request->key);
	struct promise_card card = node_promised_beside(claims->node, d->card, request->key);
	struct promise_request wanted = d->terms;
	wanted.waits = request->on_full == ON_FULL_WAIT;
	card.is_movable = request->on_full == ON_FULL_SWAP;
	terms->device[device].card = d->card;
	terms->device[device].slots = d->slots;
	snprintf(fresh->uuid[device], sizeof(fresh->uuid[device]), "%s", d->card->info.uuid_text);
	return promise_decide(&card, NULL, 0, &wanted, &terms->device[device].promise, err);
}

/* Checks that no claim has one of the slots that `fresh` is to get, not even a claim whose card is missing. */
static int check_slots(struct claims *claims, const struct store_claim *fresh, struct error *err)
{
	for (unsigned i = 0; i < fresh->terms.device_count; i++) {
		unsigned slot;
		const struct claim *c = claims_holder(claims, fresh->uuid[i],
						      &fresh->terms.device[i].slots, &slot);
		if (c)
			return error_set(
				err, EEXIST,
				"claim '%s': device %s-%u belongs to claim '%s': first delete that "
				"claim's pod or CDI device (allot cdi remove)",
				fresh->terms.claim.key, fresh->uuid[i], slot,
				claim_terms(c)->claim.key);
	}
	return 0;
}

static void decide_control(struct claims *claims, const struct claim_request *request,
			   struct tenant_claim *ret)
{
	bool is_allowed = claims->node->config.allow_disable_control;
	ret->is_uncontrolled = request->wants_no_control && is_allowed;
	if (!request->wants_no_control || is_allowed)
		return;
	claims->counts.control_refused++;
	log_warning("claim '%s': CUDA_DISABLE_CONTROL is ignored: the setting "
		    "allow_disable_control is off",
		    request->key);
}

static int decide(struct claims *claims, const struct claim_request *request,
		  struct store_claim *fresh, struct error *err)
{
	struct tenant_terms *terms = &fresh->terms;
	int r = claims_check_key(request->key, err);
	if (r < 0)
		return r;
	if (claims_find(claims, request->key))
		return error_set(err, EEXIST, "claim '%s' already exists", request->key);
	if (request->device_count == 0 || request->device_count > REGION_MAX_DEVICES)
		return error_set(err, EINVAL, "claim '%s': must have 1 to %d GPUs, not %u",
				 request->key, REGION_MAX_DEVICES, request->device_count);
	fresh->made_s = (uint64_t)time(NULL);
	terms->uid = request->uid;
	terms->priority = request->priority;
	terms->on_full = request->on_full;
	terms->swap_arena_bytes = request->swap_arena_bytes;
	terms->elastic = request->elastic;
	terms->claim.while_wanted = request->while_wanted;
	strcpy(terms->claim.key, request->key);
	for (; r >= 0 && terms->device_count < request->device_count; terms->device_count++)
		r = decide_device(claims, request, terms->device_count, fresh, err);
	if (r >= 0)
		r = check_slots(claims, fresh, err);
	if (r >= 0)
		r = swap_check_terms(claims->node, terms, err);
	if (r >= 0)
		r = claims_make_tenant_id(claims->node, terms->id, err);
	if (r < 0)
		return r;
	claims_make_name(claims, request->tenant ? request->tenant : request->key, terms->id,
			 terms->name);
	if (request->namespace_name)
		r = space_choose(claims->node, &request->sharing, request->namespace_name, terms,
				 err);
	if (r < 0)
		return r;
	decide_control(claims, request, &terms->claim);
	return 0;
}

/* A checkpoint (copying the store's log into its file) would delay commits. It runs when no commit has come for this long. */
#define CHECKPOINT_NS (2 * NSEC_PER_SEC)

int claims_commit(struct claims *claims, int r, struct error *err)
{
	if (r >= 0)
		r = store_commit(claims->store, err);
	if (r >= 0) {
		claims->undone_count = 0;
		loop_arm(claims->checkpoint_timer, CHECKPOINT_NS, 0);
	} else {
		store_rollback(claims->store);
	}
	return r;
}

/* On failure the data stays in the store's log until the next checkpoint. */
void claims_checkpoint_due(void *data, uint32_t events)
{
	struct claims *claims = data;
	struct error err = { 0 };
	if (claims->store && store_checkpoint(claims->store, &err) < 0)
		log_debug("claims: %s", err.text);
}

/* How far an allocation got before it failed. */
enum stage { STAGE_REQUEST, STAGE_STORE, STAGE_TENANT };

static int make_tenant(struct claims *claims, const struct store_claim *fresh, struct tenant **ret,
		       enum stage *stage, struct error *err)
{
	struct tenant *tenant;
	*stage = STAGE_TENANT;
	int r = tenant_new(claims->node, &fresh->terms, &tenant, err);
	if (r < 0)
		return r;
	*stage = STAGE_STORE;
	r = claims_commit(claims, tenant_state_save(tenant, false, err), err);
	if (r < 0) {
		tenant_remove(tenant, NULL);
		return r;
	}
	*ret = tenant;
	return 0;
}

/*
 * Writes the row, makes the tenant, then commits. If the daemon is killed before the commit, the next daemon removes the
 * tenant, which has no stored claim. The list entry is allocated first, so that nothing can fail after the commit.
 */
static int write_down(struct claims *claims, const struct store_claim *fresh, struct claim **ret,
		      enum stage *stage, struct error *err)
{
	cleanup_free struct claim *claim = new_claim(claims, -1, fresh->made_s);
	if (!claim || reserve(claims, fresh) < 0)
		return error_set_errno(err, ENOMEM, "claim '%s'", fresh->terms.claim.key);
	*stage = STAGE_STORE;
	int r = claims_begin(claims, err);
	if (r >= 0)
		r = store_add(claims->store, fresh, &claim->row, err);
	if (r >= 0)
		r = make_tenant(claims, fresh, &claim->tenant, stage, err);
	if (r < 0) {
		store_rollback(claims->store);
		return r;
	}
	enlist(claim);
	*ret = steal_pointer(&claim);
	return 0;
}

/* -ENOSPC means a full disk or a full card, depending on the stage. */
static void count_refusal(struct claims_counts *counts, int r, enum stage stage)
{
	if (stage == STAGE_STORE)
		counts->refused_store++;
	else if (r == -ENOSPC)
		counts->refused_full++;
	else if (stage == STAGE_REQUEST && (r == -EINVAL || r == -ENODEV || r == -EEXIST))
		counts->refused_request++;
	else
		counts->refused_other++;
}

static int allocate(struct claims *claims, const struct claim_request *request, struct claim **ret,
		    struct error *err)
{
	cleanup_free struct store_claim *fresh = calloc(1, sizeof(*fresh));
	enum stage stage = STAGE_STORE;
	if (!fresh)
		return error_set_errno(err, ENOMEM, "claim '%.64s'", request->key);
	int r = claims_use_store(claims, true, err);
	if (r >= 0) {
		stage = STAGE_REQUEST;
		r = decide(claims, request, fresh, err);
	}
	/* Before storing: a library that cannot be installed is the likeliest reason why injection_make() would fail. */
	if (r >= 0 && !fresh->terms.claim.is_uncontrolled) {
		stage = STAGE_TENANT;
		r = claims_prepare_library(claims, err);
		if (r < 0)
			error_add(err, r, "claim '%s'", request->key);
	}
	if (r >= 0) {
		r = write_down(claims, fresh, ret, &stage, err);
		if (r == -EBADMSG && claims_renew_store(claims, err) >= 0)
			r = write_down(claims, fresh, ret, &stage, err);
	}
	if (r < 0) {
		count_refusal(&claims->counts, r, stage);
		return r;
	}
	claims->counts.made++;
	log_info("claim '%s': made for uid %u, tenant '%s' (%s)", request->key,
		 (unsigned)request->uid, fresh->terms.name, fresh->terms.id);
	return 0;
}

/* Records an allocation in the audit log. If no actor is set, the kubelet made the request: the control socket sets one. */
static void note_in_audit(struct claims *claims, const struct claim_request *request,
			  const struct claim *claim)
{
	static const struct audit_actor kubelet = { .by = AUDIT_BY_KUBELET };
	struct audit *audit = claims->node->audit;
	if (!audit || !claim->tenant)
		return;
	bool is_request = audit_set_actor_if_none(audit, &kubelet);
	if (request->wants_no_control) {
		json_t *what = audit_about(audit, claim->tenant);
		if (what)
			json_object_set_new(what, "permitted",
					    json_boolean(claim->tenant->terms.claim.is_uncontrolled));
		audit_write(audit, "disable_control", what);
	}
	if (!is_request)
		return; /* api/dispatch.c records requests of the control socket */
	json_t *what = audit_about(audit, claim->tenant);
	json_t *terms = audit_terms(audit, claim->tenant);
	if (what)
		audit_add_change(what, NULL, terms);
	json_decref(terms);
	audit_write(audit, "claim", what);
	audit_set_actor(audit, NULL);
}

int claims_allocate(struct claims *claims, const struct claim_request *request, struct claim **ret,
		    struct error *err)
{
	int r = allocate(claims, request, ret, err);
	if (r >= 0)
		note_in_audit(claims, request, *ret);
	return r;
}

static int remove_row(struct claims *claims, int64_t row, struct error *err)
{
	int r = claims_begin(claims, err);
	if (r >= 0)
		r = store_remove(claims->store, row, err);
	return claims_commit(claims, r, err);
}

int claims_release(struct claims *claims, const char *key, const char *why, struct error *err)
{
	int r = claims_use_store(claims, true, err);
	struct claim *claim = claims_find(claims, key);
	if (!claim)
		return error_set(err, ENOENT, "claim '%.64s' does not exist", key);
	if (r >= 0)
		r = remove_row(claims, claim->row, err);
	if (r == -EBADMSG && claims_renew_store(claims, err) >= 0)
		r = remove_row(claims, claim->row, err);
	if (r < 0)
		return error_add(err, r, "claim '%s'", key);
	claims->counts.released++;
	claims_end(claim, why);
	return 0;
}

int claims_terms_changed(struct claims *claims, const struct tenant *tenant, struct error *err)
{
	cleanup_free struct store_claim *now = calloc(1, sizeof(*now));
	struct claim *claim = claims_of_tenant(claims, tenant);
	if (!claim)
		return 0;
	if (!now)
		return error_set_errno(err, ENOMEM, "claim '%s'", tenant->terms.claim.key);
	int r = claims_use_store(claims, true, err);
	if (r < 0)
		return r;
	claims_describe(claim, now);
	r = claims_begin(claims, err);
	if (r >= 0)
		r = store_change(claims->store, claim->row, now, err);
	r = claims_commit(claims, r, err);
	/* If the store is damaged (-EBADMSG), write a new one with every claim's present terms, including this change. */
	return r == -EBADMSG ? claims_renew_store(claims, err) : r;
}
