#include "daemon/state/tenant.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fnv.h"
#include "base/log.h"
#include "daemon/memory/checkpoint/checkpoint.h"
#include "daemon/state/node/subsystem.h"
#include "daemon/state/fd_exchange_store.h"
#include "policy/lease/rules/share_delta.h"

#define SAVE_DELAY_NS (20 * NSEC_PER_MSEC)

static const char *const on_full_names[] = {
	[ON_FULL_FAIL] = "fail", [ON_FULL_WAIT] = "wait", [ON_FULL_SWAP] = "swap"
};

const char *on_full_name(enum on_full on_full)
{
	return on_full_names[on_full];
}

int on_full_parse(const char *text, enum on_full *ret)
{
	for (unsigned i = 0; i < sizeof(on_full_names) / sizeof(on_full_names[0]); i++)
		if (!strcmp(text, on_full_names[i])) {
			*ret = (enum on_full)i;
			return 0;
		}
	return -EINVAL;
}

enum tenant_place tenant_place(const struct tenant_terms *terms)
{
	return *terms->claim.key ? TENANT_PLACE_CLAIM : TENANT_PLACE_OWN;
}

void tenant_dir_path(const struct node *node, enum tenant_place place, const char *id,
		     const char *leaf, char path[NODE_PATH_MAX])
{
	snprintf(path, NODE_PATH_MAX, "%s/%s%s%.8s%s%s", node->run_dir,
		 place == TENANT_PLACE_CLAIM ? "claims" : "tenants", id ? "/" : "", id ? id : "",
		 leaf ? "/" : "", leaf ? leaf : "");
}

uint32_t tenant_log_key(const struct tenant_terms *terms)
{
	return terms->claim.key[0] ? log_key(terms->claim.key) : terms->uid;
}

void tenant_path(const struct tenant *tenant, const char *leaf, char path[NODE_PATH_MAX])
{
	tenant_dir_path(tenant->node, tenant_place(&tenant->terms), tenant->terms.id, leaf, path);
}

/*
 * The directory belongs to the daemon's user, because a restarted daemon reads the tenant's terms from it. A claim's directory
 * is always open (0755): it is mounted into a container, whose processes run as any user.
 */
static int make_directory(struct tenant *tenant, struct error *err)
{
	char path[NODE_PATH_MAX];
	tenant_path(tenant, NULL, path);
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		return error_set_errno(err, errno, "make %s", path);
	bool is_closed = tenant->node->is_private && !*tenant->terms.claim.key;
	if (chmod(path, is_closed ? 0700 : 0755) < 0)
		return error_set_errno(err, errno, "chmod %s", path);
	return 0;
}

struct arbiter_share tenant_share(const struct tenant *tenant, unsigned device)
{
	double cores_pct = tenant->device[device].guaranteed_pct,
	       limit_pct = tenant->terms.device[device].promise.limit_pct;
	double scale = tenant->share_scale;
	return (struct arbiter_share){ .cores_pct = fmin(cores_pct * scale, 100),
				       .limit_pct = fmin(limit_pct * scale, 100),
				       .priority = tenant->terms.priority };
}

static void publish_promise(struct tenant *tenant, unsigned device)
{
	const struct promise *p = &tenant->terms.device[device].promise;
	struct region_control_device *d = &tenant->region.control->device[device];
	atomic_store_explicit(&d->cores_pct_x100, (uint32_t)(p->cores_pct * 100 + 0.5),
			      memory_order_relaxed);
	atomic_store_explicit(&d->limit_pct_x100, (uint32_t)(p->limit_pct * 100 + 0.5),
			      memory_order_relaxed);
	tenant_publish_quota(tenant, device);
}

static int make_region(struct tenant *tenant, struct error *err)
{
	const struct tenant_terms *t = &tenant->terms;
	int r = region_host_create(&tenant->region, t->name, tenant->node->epoch, t->device_count,
				   err);
	if (r < 0)
		return r;
	for (unsigned i = 0; i < t->device_count; i++) {
		struct region_control_device *d = &tenant->region.control->device[i];
		memcpy(d->uuid, t->device[i].card->info.uuid, sizeof(d->uuid));
		if (t->device[i].card->info.is_instance)
			tenant->region.control->instances |= 1U << i;
		atomic_store(&d->context_bytes, t->device[i].card->context_bytes);
		atomic_store(&d->depth_ns, tenant->node->config.arbiter.depth_ns);
		atomic_store(&d->free_depth_ns, tenant->node->config.free_depth_ns);
		atomic_store(&d->long_work_ns, tenant->node->config.arbiter.long_work_ns);
		atomic_store(&d->idle_ns, tenant->node->config.arbiter.idle_ns);
		atomic_store(&d->swap_bound_bytes, UINT64_MAX);
		publish_promise(tenant, i);
	}
	atomic_store_explicit(&tenant->region.control->device[REGION_HOST].quota_bytes,
			      t->has_host_quota ? t->host_quota_bytes : UINT64_MAX,
			      memory_order_seq_cst);
	return 0;
}

/*
 * GPU time may be owed even after the tenant has ended. Returns a number for the debtor: the user or, in Kubernetes, the
 * container. Root may start tenants for others, so each name of root's tenants is a debtor of its own.
 */
static uint64_t owner_of(const struct tenant_terms *terms)
{
	const char *name = terms->claim.key[0] ? terms->claim.key : terms->name;
	if (!terms->claim.key[0] && terms->uid)
		return terms->uid;
	/* No uid has the highest bit. */
	return fnv64(FNV64_BEGIN, name, strlen(name)) | UINT64_C(1) << 63;
}

static int make_leases(struct tenant *tenant, struct error *err)
{
	for (unsigned i = 0; i < tenant->terms.device_count; i++) {
		struct card *card = tenant->terms.device[i].card;
		tenant->device[i].guaranteed_pct = tenant->terms.device[i].promise.cores_pct;
		int r = lessee_add(card->arbitration, tenant->region.control, tenant->region.report,
				   i, tenant_share(tenant, i), owner_of(&tenant->terms),
				   &tenant->device[i].lessee, err);
		if (r < 0)
			return error_add(err, r, "GPU %u", card->index);
		lessee_set_paused(tenant->device[i].lessee, tenant->terms.paused);
	}
	/* Negative: no gang, because the tenant has one card, there are too many gangs, or the node aligns no turns. */
	tenant->gang = tenant->node->gangs && tenant->terms.device_count > 1
			       ? gangs_add(tenant->node->gangs)
			       : -1;
	for (unsigned i = 0; i < tenant->terms.device_count; i++)
		lessee_set_gang(tenant->device[i].lessee, tenant->gang);
	return 0;
}

void tenant_delete_files(const struct node *node, enum tenant_place place, const char *id)
{
	static const char *const leaves[] = { "allot.sock", "tenant.json", "tenant.json.new" };
	char path[NODE_PATH_MAX];
	for (size_t i = 0; i < sizeof(leaves) / sizeof(leaves[0]); i++) {
		tenant_dir_path(node, place, id, leaves[i], path);
		unlink(path);
	}
	tenant_dir_path(node, place, id, NULL, path);
	if (rmdir(path) < 0 && errno != ENOENT)
		log_warning("can't remove %s: %s", path, strerror(errno));
}

static int open_tenant(struct node *node, const struct tenant_terms *terms, bool is_new,
		       struct tenant **ret, struct error *err)
{
	struct tenant *tenant = calloc(1, sizeof(*tenant));
	if (!tenant)
		return error_set_errno(err, ENOMEM, "tenant '%s'", terms->name);
	tenant->node = node;
	tenant->gang = -1;
	tenant->swap_schedule = -1;
	tenant->share_scale = 1;
	tenant->terms = *terms;
	TAILQ_INSERT_TAIL(&node->tenants, tenant, link);
	text_index_add(&node->tenant_names, &tenant->by_name, tenant->terms.name, tenant);
	text_index_add(&node->tenant_ids, &tenant->by_id, tenant->terms.id, tenant);
	node->tenant_count++;
	node->waiter_count += terms->on_full == ON_FULL_WAIT;

	int r = make_directory(tenant, err);
	if (r >= 0)
		r = make_region(tenant, err);
	if (r >= 0)
		r = make_leases(tenant, err);
	if (r >= 0)
		r = notify_tenant_added(tenant->node, tenant, is_new, err);
	if (r < 0) {
		tenant_free(tenant);
		return error_add(err, r, "tenant '%s'", terms->name);
	}
	notify_tenants_changed(node);
	*ret = tenant;
	return 0;
}

/* Makes no new arena: the processes keep the old one, and memory of processes that join later cannot be swapped. */
int tenant_adopt(struct node *node, const struct tenant_terms *terms, struct tenant **ret,
		 struct error *err)
{
	return open_tenant(node, terms, false, ret, err);
}

/* Refuses a MIG instance beside another device, since CUDA shows only the instance to a process that uses one. */
static int check_instances(const struct tenant_terms *terms, struct error *err)
{
	for (unsigned i = 0; terms->device_count > 1 && i < terms->device_count; i++) {
		const struct card *card = terms->device[i].card;
		if (card->info.is_instance)
			return error_set(
				err, EINVAL,
				"GPU %u (%s) is a MIG instance: CUDA shows no other device to a "
				"process that uses a MIG instance: ask for this device only, not for %u devices",
				card->index, card->info.uuid_text, terms->device_count);
	}
	return 0;
}

int tenant_new(struct node *node, const struct tenant_terms *terms, struct tenant **ret,
	       struct error *err)
{
	int r = check_instances(terms, err);
	if (r < 0)
		return r;
	r = open_tenant(node, terms, true, ret, err);
	if (r < 0)
		tenant_delete_files(node, tenant_place(terms), terms->id);
	return r;
}

struct tenant *tenant_free(struct tenant *tenant)
{
	if (!tenant)
		return NULL;
	notify_tenant_removed(tenant->node, tenant);
	/* If the tenant was not made completely, a lessee may be NULL, which lessee_remove() allows. */
	for (unsigned i = 0; i < tenant->terms.device_count; i++)
		lessee_remove(tenant->device[i].lessee);
	if (tenant->gang >= 0 && tenant->node->gangs)
		gangs_remove(tenant->node->gangs, tenant->gang);
	for (unsigned i = 0; i < tenant->slot_limit; i++)
		if (tenant->process[i])
			tenant_forget_process(tenant->process[i]);
	tenant->fd_store = fd_store_free(tenant->fd_store);
	region_host_free(&tenant->region);
	TAILQ_REMOVE(&tenant->node->tenants, tenant, link);
	text_index_remove(&tenant->node->tenant_names, &tenant->by_name);
	text_index_remove(&tenant->node->tenant_ids, &tenant->by_id);
	tenant->node->tenant_count--;
	tenant->node->waiter_count -= tenant->terms.on_full == ON_FULL_WAIT;
	free(tenant->command_cgroup);
	free(tenant);
	return NULL;
}

void tenant_remove(struct tenant *tenant, const char *why)
{
	struct node *node = tenant->node;
	if (why) {
		log_info_of(tenant_log_key(&tenant->terms), "tenant '%s' (%s): ended: %s",
			    tenant->terms.name, tenant->terms.id, why);
		NOTIFY(tenant->node, tenant_ended, tenant, why);
	}
	tenant_delete_files(node, tenant_place(&tenant->terms), tenant->terms.id);
	tenant_free(tenant);
	notify_tenants_changed(node);
}

unsigned tenant_living_count(const struct tenant *tenant)
{
	unsigned count = tenant->process_count;
	for (const struct old_process *o = tenant->old; o; o = o->next)
		count += !o->registered;
	return count;
}

bool tenant_retire(struct tenant *tenant, const char *why)
{
	if (!tenant_living_count(tenant)) {
		tenant_remove(tenant, why);
		return false;
	}
	if (tenant->terms.is_retired)
		return true;
	tenant->terms.is_retired = true;
	for (unsigned i = 0; i < tenant->terms.device_count; i++)
		tenant_publish_quota(tenant, i);
	NOTIFY(tenant->node, tenant_retired, tenant);
	tenant_save_soon(tenant);
	log_warning("tenant '%s' (%s): %s, but some of its processes still run: until they end, "
		    "the tenant's name, memory and GPU share stay reserved",
		    tenant->terms.name, tenant->terms.id, why);
	return true;
}

int tenant_check_not_retired(const struct tenant *tenant, struct error *err)
{
	if (!tenant->terms.is_retired)
		return 0;
	return error_set(err, ESHUTDOWN,
			 "tenant '%s' was removed, and ends when its %u processes have ended: start "
			 "another tenant",
			 tenant->terms.name, tenant_living_count(tenant));
}

void tenant_end_if_unused(struct tenant *tenant)
{
	if (tenant_living_count(tenant))
		return;
	if (tenant->terms.is_retired) {
		tenant_remove(tenant, "it was removed, and its processes have ended");
		return;
	}
	if (!tenant->terms.hold || tenant->holders)
		return;
	if (tenant->grace && clock_now_ns() < tenant->grace_end_ns)
		return;
	tenant_remove(tenant, "its holder and processes are gone");
}

void tenant_set_promise(struct tenant *tenant, unsigned device, const struct promise *promise)
{
	tenant->terms.device[device].promise = *promise;
	publish_promise(tenant, device);
	tenant->device[device].guaranteed_pct = promise->cores_pct;
	lessee_set_share(tenant->device[device].lessee, tenant_share(tenant, device));
	NOTIFY(tenant->node, share_changed, tenant);
}

void tenant_set_guarantee(struct tenant *tenant, unsigned device, double guaranteed_pct)
{
	struct tenant_device *d = &tenant->device[device];
	if (fabs(d->guaranteed_pct - guaranteed_pct) < 1e-9)
		return;
	d->guaranteed_pct = guaranteed_pct;
	if (d->lessee)
		lessee_set_share(d->lessee, tenant_share(tenant, device));
}

void tenant_set_elastic(struct tenant *tenant, enum elastic_choice choice)
{
	tenant->terms.elastic = choice;
	NOTIFY(tenant->node, share_changed, tenant);
}

static void update_shares(struct tenant *tenant)
{
	for (unsigned i = 0; i < tenant->terms.device_count; i++)
		lessee_set_share(tenant->device[i].lessee, tenant_share(tenant, i));
	NOTIFY(tenant->node, share_changed, tenant);
}

void tenant_set_priority(struct tenant *tenant, int priority)
{
	tenant->terms.priority = priority;
	update_shares(tenant);
}

double tenant_limit_pct(const struct tenant *tenant, unsigned device)
{
	return tenant_share(tenant, device).limit_pct;
}

double tenant_delta_pct(const struct tenant *tenant, unsigned device,
			const struct lessee_figures *figures)
{
	const struct promise *p = &tenant->terms.device[device].promise;
	/* Lent time is no deviation, and may have been lent at any time in the minute. */
	double limit_pct = figures->lend_reason == LEND_OFF ? p->limit_pct : 100;

	return share_delta_pct(p->cores_pct, limit_pct, figures->wanted_60s_pct,
			       figures->got_60s_pct);
}

void tenant_scale_share(struct tenant *tenant, double scale)
{
	tenant->share_scale = scale;
	update_shares(tenant);
}

void tenant_save_soon(struct tenant *tenant)
{
	if (!tenant->unsaved)
		loop_arm(tenant->node->save_timer, SAVE_DELAY_NS, 0);
	tenant->unsaved = true;
}

void tenant_set_quota(struct tenant *tenant, unsigned device, uint64_t quota_bytes)
{
	tenant->terms.device[device].promise.quota_bytes = quota_bytes;
	tenant_publish_quota(tenant, device);
}

bool tenant_is_any_adopting(const struct node *node)
{
	const struct tenant *t;
	TAILQ_FOREACH(t, &node->tenants, link)
		if (t->adopting)
			return true;
	return false;
}

bool tenant_is_off_card(const struct tenant *tenant)
{
	return tenant->checkpoint && checkpoint_place(tenant->checkpoint) == PLACE_OUT;
}

void tenant_publish_quota(struct tenant *tenant, unsigned device)
{
	uint64_t quota_bytes = tenant->terms.device[device].promise.quota_bytes;
	if (tenant_is_off_card(tenant) || tenant->terms.is_retired) {
		uint64_t used_bytes = tenant_usage(tenant, device).used_bytes;
		quota_bytes = used_bytes < quota_bytes ? used_bytes : quota_bytes;
	}
	atomic_store_explicit(&tenant->region.control->device[device].quota_bytes, quota_bytes,
			      memory_order_seq_cst);
}

void tenant_set_paused(struct tenant *tenant, bool paused, bool swapped_out)
{
	tenant->terms.paused = paused;
	tenant->terms.swapped_out = swapped_out;
	for (unsigned i = 0; i < tenant->terms.device_count; i++)
		lessee_set_paused(tenant->device[i].lessee, paused || tenant->is_away);
	notify_tenants_changed(tenant->node);
}

/*
 * Returns true if `other` may want the card at any moment; then t must keep little work in flight even while t runs alone.
 * False if both run concurrently in one group and t's limit is its guarantee, because each then has SMs of its own.
 */
static bool may_want(const struct tenant *t, const struct tenant *other, const struct card *card)
{
	const struct promise *p = &t->terms.device[0].promise;

	if (t == other || !other->process_count)
		return false;
	if (t->space && t->space == other->space && p->limit_pct <= p->cores_pct)
		return false;
	for (unsigned i = 0; i < other->terms.device_count; i++)
		if (other->terms.device[i].card == card)
			return true;
	return false;
}

void tenant_publish_free_depth(struct node *node)
{
	const struct tenant *t, *other;
	TAILQ_FOREACH(t, &node->tenants, link)
		for (unsigned i = 0; i < t->terms.device_count; i++) {
			bool any = false;
			TAILQ_FOREACH(other, &node->tenants, link)
				any = any || may_want(t, other, t->terms.device[i].card);
			atomic_store_explicit(&t->region.control->device[i].free_depth_ns,
					      any ? node->config.free_depth_ns
						  : node->config.free_depth_alone_ns,
					      memory_order_seq_cst);
		}
}
