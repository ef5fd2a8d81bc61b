/* Puts the store's claims into force when the daemon starts, or later if the store was unusable at the start. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "daemon/containers/claims/check.h"
#include "daemon/containers/claims/claims.h"
#include "daemon/containers/claims/claims_inside.h"
#include "daemon/memory/memory_waiters.h"
#include "daemon/state/card_promises.h"
#include "daemon/state/tenant_state.h"

struct reading {
	struct store_claim *list;
	size_t count;
};

static void reading_free(struct reading *reading)
{
	free(reading->list);
	*reading = (struct reading){ 0 };
}

static int keep_read(void *data, const struct store_claim *claim, struct error *err)
{
	struct reading *reading = data;
	/* The list's capacity is 16, 32, 64 ...: grow it when the count reaches these numbers. */
	size_t n = reading->count;
	if (n == 0 || (n >= 16 && (n & (n - 1)) == 0)) {
		struct store_claim *grown = realloc(reading->list,
						    (n < 16 ? 16 : n * 2) * sizeof(*grown));
		if (!grown)
			return error_set_errno(err, ENOMEM, "claims");
		reading->list = grown;
	}
	reading->list[reading->count++] = *claim;
	return 0;
}

static int find_cards(struct node *node, struct store_claim *claim, struct error *err)
{
	int r = 0;
	for (unsigned i = 0; i < claim->terms.device_count; i++) {
		struct card *card = node_find_card_text(node, claim->uuid[i]);
		claim->terms.device[i].card = card;
		if (!card)
			r = error_set(err, ENODEV, "GPU %s is not on this node", claim->uuid[i]);
	}
	return r;
}

/* Checks whether the stored promises still fit beside the present tenants, as for a new request. */
static int promise_again(struct node *node, struct tenant_terms *terms, struct error *err)
{
	int r = 0;
	for (unsigned i = 0; r >= 0 && i < terms->device_count; i++) {
		const struct promise *p = &terms->device[i].promise;
		struct promise_card card = node_promised_beside(node, terms->device[i].card,
								terms->claim.key);
		struct promise_request request = { .has_memory = p->memory_given,
						   .memory_bytes = p->quota_bytes,
						   .has_reserve = p->reserve_bytes != 0,
						   .reserve_bytes = p->reserve_bytes,
						   .waits = terms->on_full == ON_FULL_WAIT,
						   .has_cores = p->cores_pct > 0,
						   .cores_pct = p->cores_pct,
						   .has_limit = p->limit_given,
						   .limit_pct = p->limit_pct };
		card.is_movable = terms->on_full == ON_FULL_SWAP;
		r = promise_decide(&card, NULL, 0, &request, &terms->device[i].promise, err);
	}
	return r;
}

static int make_again(struct node *node, struct store_claim *claim, struct tenant **ret,
		      struct error *err)
{
	struct tenant *tenant;
	int r = find_cards(node, claim, err);
	if (r >= 0 && node_find_tenant(node, claim->terms.name))
		r = error_set(err, EEXIST, "another tenant has the name '%s'", claim->terms.name);
	if (r >= 0)
		r = promise_again(node, &claim->terms, err);
	if (r >= 0)
		r = tenant_new(node, &claim->terms, &tenant, err);
	if (r < 0)
		return r;
	/* The state file can be written later: it only tells which processes run in the tenant, and none runs yet. */
	tenant_save_soon(tenant);
	*ret = tenant;
	return 0;
}

static int park(struct claims *claims, const struct store_claim *claim, const struct error *why,
		struct error *err)
{
	struct parked *parked = calloc(1, sizeof(*parked));
	if (parked) {
		parked->as_written = *claim;
		snprintf(parked->why, sizeof(parked->why), "%.*s", (int)sizeof(parked->why) - 1,
			 why->text);
	}
	struct claim *added = parked ? claims_add(claims, claim->row, claim->made_s, NULL, parked)
				     : NULL;
	if (!added)
		return error_set_errno(err, ENOMEM, "claim '%s'", claim->terms.claim.key);
	log_error("claim '%s' can't be restored, so its container has no GPU: %s; the claim is "
		  "kept, and allotd tries again at its next start",
		  claim->terms.claim.key, why->text);
	return claims_load_original(added, claim, err);
}

/* The state file of a tenant that was taken over may be older than the store, so the store's terms are applied. */
static int follow_store(struct claim *claim, const struct store_claim *written, struct error *err)
{
	struct tenant *tenant = claim->tenant;
	claims_release_slots(claim);
	claim->row = written->row;
	claim->made_s = written->made_s;
	tenant->terms.claim = written->terms.claim;
	tenant_set_priority(tenant, written->terms.priority);
	tenant_set_elastic(tenant, written->terms.elastic);
	for (unsigned i = 0; i < tenant->terms.device_count; i++)
		for (unsigned j = 0; j < written->terms.device_count; j++) {
			struct promise p = written->terms.device[j].promise;
			struct tenant_device_terms *now = &tenant->terms.device[i];
			if (strcmp(now->card->info.uuid_text, written->uuid[j]) != 0)
				continue;
			if (!p.memory_given)
				p.quota_bytes = now->promise.quota_bytes;
			now->slots = written->terms.device[j].slots;
			tenant_set_promise(tenant, i, &p);
		}
	memory_wait_set_on_full(tenant, written->terms.on_full);
	tenant_save_soon(tenant);
	int r = claims_reserve_slots(claim);
	if (r < 0)
		return error_set_errno(err, -r, "claim '%s'", written->terms.claim.key);
	return claims_load_original(claim, written, err);
}

static struct claim *find_listed(struct claims *claims, const struct store_claim *written)
{
	struct claim *c;
	TAILQ_FOREACH(c, &claims->list, link)
		if (!strcmp(claim_terms(c)->claim.key, written->terms.claim.key) &&
		    !strcmp(claim_terms(c)->id, written->terms.id))
			return c;
	return NULL;
}

static int restore_claim(struct claims *claims, const struct store_claim *written, struct error *err)
{
	struct tenant *tenant;
	struct error why = { 0 };
	cleanup_free struct store_claim *again = calloc(1, sizeof(*again));
	if (!again)
		return error_set_errno(err, ENOMEM, "claim '%s'", written->terms.claim.key);
	*again = *written;
	int r = make_again(claims->node, again, &tenant, &why);
	if (r < 0)
		return park(claims, again, &why, err);
	struct claim *added = claims_add(claims, written->row, written->made_s, tenant, NULL);
	if (added)
		return claims_load_original(added, written, err);
	tenant_free(tenant);
	return error_set_errno(err, ENOMEM, "claim '%s'", written->terms.claim.key);
}

/* Lists a claim for each adopted tenant (taken over from an earlier daemon). Row -1: not found in the store yet. */
static int list_adopted(struct claims *claims, struct error *err)
{
	struct tenant *t;
	TAILQ_FOREACH(t, &claims->node->tenants, link)
		if (*t->terms.claim.key && !t->terms.is_retired &&
		    !claims_add(claims, -1, (uint64_t)time(NULL), t, NULL))
			return error_set_errno(err, ENOMEM, "claims");
	return 0;
}

/* Row -1: the earlier daemon was killed before it stored the claim, or after it had deleted the claim's row. */
static void remove_unwritten(struct claims *claims)
{
	struct claim *next;
	for (struct claim *c = claims_first(claims); c; c = next) {
		next = claims_next(c);
		if (c->row < 0)
			claims_end(c, "its claim was not saved, or was released");
	}
}

/* Logs claims that do not fit together, but keeps them: settings may have changed, or the store was edited by hand. */
static void check_all(struct claims *claims)
{
	const struct tenant_terms **list = calloc(claims->count + 1, sizeof(*list));
	struct error err = { 0 };
	size_t count = 0;
	for (struct claim *c = claims_first(claims); list && c; c = claims_next(c))
		list[count++] = claim_terms(c);
	if (list && claims_check(list, count, !claims->node->config.refuse_overcommit, &err) < 0)
		log_warning("claims saved before this start conflict; all are kept until their "
			    "pods or devices end: %s",
			    err.text);
	free(list);
}

static int merge(struct claims *claims, struct error *err)
{
	cleanup(reading_free) struct reading reading = { 0 };
	int r = store_read(claims->store, keep_read, &reading, err);
	for (size_t i = 0; r >= 0 && i < reading.count; i++) {
		struct claim *claim = find_listed(claims, &reading.list[i]);
		if (claim && claim->row < 0 && claim->tenant)
			r = follow_store(claim, &reading.list[i], err);
	}
	if (r < 0)
		return r;
	/* First remove tenants without a stored claim: claims that are restored below may need the memory. */
	remove_unwritten(claims);
	for (size_t i = 0; r >= 0 && i < reading.count; i++)
		if (!find_listed(claims, &reading.list[i]) &&
		    !claims_is_undone(claims, reading.list[i].row))
			r = restore_claim(claims, &reading.list[i], err);
	if (r < 0)
		return r;
	check_all(claims);
	if (claims->count)
		log_info("%u claims were restored", claims->count);
	return 0;
}

static int write_all(struct claims *claims, struct error *err)
{
	cleanup_free struct store_claim *written = calloc(1, sizeof(*written));
	struct claim *c;
	int r = written ? store_begin(claims->store, err) : error_set_errno(err, ENOMEM, "claims");
	for (c = claims_first(claims); r >= 0 && c; c = claims_next(c)) {
		claims_describe(c, written);
		r = store_add(claims->store, written, &c->row, err);
	}
	if (r >= 0)
		r = store_set_filled(claims->store, err);
	r = claims_commit(claims, r, err);
	for (c = claims_first(claims); r < 0 && c; c = claims_next(c))
		c->row = -1;
	return r;
}

static int set_aside(struct claims *claims, const struct error *why, struct error *err)
{
	char name[sizeof(claims->path) + 32];
	claims->store = store_close(claims->store);
	int r = store_set_aside(claims->path, name, sizeof(name), err);
	if (r < 0)
		return error_add(err, r, "%s; and the file can't be renamed", why->text);
	claims->counts.stores_set_aside++;
	claims->undone_count = 0; /* these rows belong to the old store */
	log_error("%s; the file was renamed to %s, and a new file has the %u claims that "
		  "allotd knows",
		  why->text, name, claims->count);
	return 0;
}

static int open_store(struct claims *claims, bool *ret_is_new, struct error *err)
{
	int r = store_open(claims->path, &claims->store, ret_is_new, err);
	if (r >= 0)
		store_preallocate_log(claims->store);
	return r;
}

int claims_renew_store(struct claims *claims, struct error *err)
{
	struct error why = *err;
	bool is_new;
	int r = set_aside(claims, &why, err);
	if (r >= 0)
		r = open_store(claims, &is_new, err);
	if (r >= 0)
		r = write_all(claims, err);
	/* A store may stay open only if it has all claims, so close it. claims_use_store() tries again. */
	if (r < 0)
		claims->store = store_close(claims->store);
	return r;
}

/* Returns -EBADMSG if the file is no valid store. */
static int open_and_read(struct claims *claims, struct error *err)
{
	bool is_new = false;
	int r = open_store(claims, &is_new, err);
	/* Put the claims of adopted tenants (list_adopted()) into a new store: the old store may have been lost. */
	if (r >= 0)
		r = is_new ? write_all(claims, err) : merge(claims, err);
	if (r < 0)
		claims->store = store_close(claims->store);
	return r;
}

int claims_use_store(struct claims *claims, bool make, struct error *err)
{
	struct error why = { 0 };
	if (claims->store)
		return 0;
	if (!make && !claims->count && access(claims->path, F_OK) < 0)
		return 0;
	int r = state_dir_make(claims->node, claims->dir, &why);
	if (r >= 0)
		r = open_and_read(claims, &why);
	if (r == -EBADMSG)
		r = claims_renew_store(claims, &why);
	if (r < 0) {
		if (!claims->is_failure_logged)
			log_error("claims can't be saved: %s; new claims are refused until saving works again",
				  why.text);
		claims->is_failure_logged = true;
		error_set(err, -r, "claims can't be saved: %s", why.text);
		return r;
	}
	claims->is_failure_logged = false;
	return 0;
}

static void reconcile_due(void *data, uint32_t events)
{
	claims_reconcile(data);
}

/* Installs the library early, since an upgrade may replace its file. claims_allocate() tries again after an error. */
static void install_early(struct claims *claims)
{
	struct error err = { 0 };
	if (claims_install_library(claims, &err) < 0)
		log_warning("liballot.so can't be installed for containers: %s; claims that need "
			    "it are refused until it can",
			    err.text);
}

int claims_open(struct node *node, struct claims **ret, struct error *err)
{
	struct claims *claims = calloc(1, sizeof(*claims));
	if (!claims)
		return error_set_errno(err, ENOMEM, "claims");
	claims->node = node;
	TAILQ_INIT(&claims->list);
	state_dir_find(node, claims->dir);
	snprintf(claims->path, sizeof(claims->path), "%s/" CLAIMS_STORE_LEAF, claims->dir);
	int r = trust_open(&node->config, &claims->trust, err);
	if (r >= 0)
		r = list_adopted(claims, err);
	if (r >= 0) {
		r = loop_add_timer(node->loop, reconcile_due, claims, &claims->timer);
		if (r >= 0)
			r = loop_add_timer(node->loop, claims_checkpoint_due, claims,
					   &claims->checkpoint_timer);
		if (r < 0)
			error_set_errno(err, -r, "claims: timer");
	}
	if (r < 0) {
		claims_close(claims);
		return r;
	}
	/* Ignore the result: errors were logged, and without a store the claims of list_adopted() stay in force. */
	claims_use_store(claims, false, NULL);
	if (claims->store)
		install_early(claims);
	else if (claims->trust)
		claims_check_library(claims, NULL); /* logs errors */
	loop_arm(claims->timer, node->config.claim_look_ns, node->config.claim_look_ns);
	*ret = claims;
	return 0;
}
