#include "node/tenant.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "node/adopt.h"
#include "node/audit/audit.h"
#include "node/census.h"
#include "node/checkpoint/tenant_checkpoint.h"
#include "node/claims/claims.h"
#include "node/elastic.h"
#include "node/mps/measure.h"
#include "node/mps/space.h"
#include "node/registration.h"
#include "node/sharing.h"
#include "node/swap.h"
#include "node/swap_turns.h"
#include "node/tenant_state.h"
#include "node/trace/tenant_trace.h"
#include "node/use.h"

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

int tenant_make_id(struct node *node, char id[TENANT_ID_MAX], struct error *err)
{
	do {
		uint32_t number;
		if (getrandom(&number, sizeof(number), 0) != sizeof(number))
			return error_set_errno(err, errno, "random numbers");
		snprintf(id, TENANT_ID_MAX, "%08" PRIx32, number);
	} while (node_find_tenant(node, id) || claims_has_parked(node->claims, id));
	return 0;
}

/*
 * The directory belongs to the daemon: what is in it decides the tenant's terms after a restart. A
 * private daemon's run directory keeps others out already; a claim's is mounted into a container whose
 * users may be anybody.
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

static struct arbiter_share share_of(const struct tenant *tenant, unsigned device)
{
	const struct promise *promise = &tenant->terms.device[device].promise;
	double scale = tenant->share_scale;
	return (struct arbiter_share){ .cores_pct = fmin(promise->cores_pct * scale, 100),
				       .limit_pct = fmin(promise->limit_pct * scale, 100),
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
		/* A job over several cards loses by it: docs/architecture.md. */
		atomic_store(&d->launch_ahead_ns,
			     t->device_count == 1 ? tenant->node->config.launch_ahead_ns : 0);
		atomic_store(&d->idle_ns, tenant->node->config.arbiter.idle_ns);
		atomic_store(&d->swap_bound_bytes, UINT64_MAX);
		publish_promise(tenant, i);
	}
	atomic_store_explicit(&tenant->region.control->device[REGION_HOST].quota_bytes,
			      t->has_host_quota ? t->host_quota_bytes : UINT64_MAX,
			      memory_order_seq_cst);
	admission_begin(tenant);
	return 0;
}

static int make_leases(struct tenant *tenant, struct error *err)
{
	for (unsigned i = 0; i < tenant->terms.device_count; i++) {
		struct card *card = tenant->terms.device[i].card;
		int r = lessee_add(card->arbitration, tenant->region.control, tenant->region.report,
				   i, share_of(tenant, i), &tenant->device[i].lessee, err);
		if (r < 0)
			return error_add(err, r, "GPU %u", card->index);
		lessee_set_paused(tenant->device[i].lessee, tenant->terms.paused);
		elastic_apply(tenant, i);
	}
	/* Where there is no room for one more, it goes without: each of its cards by itself. */
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

/* One that is adopted has processes already, that may be at work: it is told what is wrong, and goes on. */
static int join_space(struct tenant *tenant, bool is_new, struct error *err)
{
	struct error why = { 0 };
	int r = space_join(tenant, is_new, is_new ? err : &why);
	measure_begin(tenant);
	if (r >= 0 || is_new)
		return r;
	log_warning("tenant '%s' (%s): %s", tenant->terms.name, tenant->terms.id, why.text);
	snprintf(tenant->space_fault, sizeof(tenant->space_fault), "%.*s", SPACE_FAULT_MAX - 1,
		 why.text);
	return 0;
}

static int open_tenant(struct node *node, const struct tenant_terms *terms, bool is_new,
		       struct tenant **ret, struct error *err)
{
	struct tenant *tenant = calloc(1, sizeof(*tenant));
	if (!tenant)
		return error_set_errno(err, ENOMEM, "tenant '%s'", terms->name);
	tenant->node = node;
	tenant->gang = -1;
	tenant->residence = -1;
	tenant->share_scale = 1;
	tenant->terms = *terms;
	TAILQ_INSERT_TAIL(&node->tenants, tenant, link);
	text_index_add(&node->tenant_names, &tenant->by_name, tenant->terms.name, tenant);
	text_index_add(&node->tenant_ids, &tenant->by_id, tenant->terms.id, tenant);
	node->tenant_count++;
	node->waiter_count += terms->on_full == ON_FULL_WAIT;
	use_begin(tenant);

	int r = make_directory(tenant, err);
	if (r >= 0)
		r = make_region(tenant, err);
	if (r >= 0)
		r = make_leases(tenant, err);
	if (r >= 0)
		r = join_space(tenant, is_new, err);
	if (r >= 0)
		swap_set_order(tenant, !terms->swapped_out                     ? SWAP_ORDER_IN
				       : swap_way_of(terms) == SWAP_BY_LIBRARY ? SWAP_ORDER_OUT
									       : SWAP_ORDER_PARKED);
	if (r >= 0 && is_new)
		r = swap_open(tenant, err);
	if (r >= 0)
		r = registration_open(tenant, &tenant->registration, err);
	if (r < 0) {
		tenant_free(tenant);
		return error_add(err, r, "tenant '%s'", terms->name);
	}
	node_tenants_changed(node);
	/* It may ask at once, and nothing is granted before a first census. */
	if (node->waiter_count && !node->foreign_known && node->census)
		census_request(node->census);
	swap_turns_look(node);
	*ret = tenant;
	return 0;
}

/*
 * Without an arena: its processes have that of the daemon before, and what is in there. Those that come
 * to it from here on are not swappable.
 */
int tenant_adopt(struct node *node, const struct tenant_terms *terms, struct tenant **ret,
		 struct error *err)
{
	return open_tenant(node, terms, false, ret, err);
}

/* CUDA shows a process one MIG instance, and no GPU beside it. */
static int check_instances(const struct tenant_terms *terms, struct error *err)
{
	for (unsigned i = 0; terms->device_count > 1 && i < terms->device_count; i++) {
		const struct card *card = terms->device[i].card;
		if (card->info.is_instance)
			return error_set(
				err, EINVAL,
				"GPU %u (%s) is a MIG instance: CUDA shows a process no other "
				"device beside it, so it must be the tenant's only one, of %u",
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
	registration_close(tenant->registration);
	tenant_trace_forget(tenant);
	admission_forget(tenant);
	use_end(tenant);
	measure_end(tenant);
	space_leave(tenant);
	/* A tenant that could not be made has no lessees yet, or not all. */
	namespace_use_end(tenant);
	for (unsigned i = 0; i < tenant->terms.device_count; i++)
		lessee_remove(tenant->device[i].lessee);
	if (tenant->gang >= 0 && tenant->node->gangs)
		gangs_remove(tenant->node->gangs, tenant->gang);
	for (unsigned i = 0; i < tenant->slot_limit; i++)
		if (tenant->process[i])
			tenant_forget_process(tenant->process[i]);
	adopt_forget_all(tenant);
	swap_turns_forget(tenant);
	tenant_checkpoint_forget(tenant);
	swap_close(tenant);
	tenant->sharing = sharing_free(tenant->sharing);
	region_host_free(&tenant->region);
	TAILQ_REMOVE(&tenant->node->tenants, tenant, link);
	text_index_remove(&tenant->node->tenant_names, &tenant->by_name);
	text_index_remove(&tenant->node->tenant_ids, &tenant->by_id);
	tenant->node->tenant_count--;
	tenant->node->waiter_count -= tenant->terms.on_full == ON_FULL_WAIT;
	free(tenant);
	return NULL;
}

static void note_end(const struct tenant *tenant, const char *why)
{
	struct audit *audit = tenant->node->audit;
	json_t *what = audit_about(audit, tenant);
	log_info_of(tenant_log_key(&tenant->terms), "tenant '%s' (%s): ended: %s",
		    tenant->terms.name, tenant->terms.id, why);
	if (what)
		json_object_set_new(what, "reason", json_clean_string(why));
	audit_write(audit, "end", what);
}

void tenant_remove(struct tenant *tenant, const char *why)
{
	struct node *node = tenant->node;
	if (why)
		note_end(tenant, why);
	tenant_delete_files(node, tenant_place(&tenant->terms), tenant->terms.id);
	tenant_free(tenant);
	node_tenants_changed(node);
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
	admission_give_up(tenant);
	tenant_state_save_soon(tenant);
	log_warning("tenant '%s' (%s): %s, but processes of it live: it keeps its name and what it "
		    "was promised until they have ended",
		    tenant->terms.name, tenant->terms.id, why);
	return true;
}

int tenant_check_not_retired(const struct tenant *tenant, struct error *err)
{
	if (!tenant->terms.is_retired)
		return 0;
	return error_set(err, ESHUTDOWN,
			 "tenant '%s' was removed, and ends when its %u processes have ended: make "
			 "another one",
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
	lessee_set_share(tenant->device[device].lessee, share_of(tenant, device));
	elastic_apply(tenant, device);
}

void tenant_set_elastic(struct tenant *tenant, enum elastic_choice choice)
{
	tenant->terms.elastic = choice;
	for (unsigned i = 0; i < tenant->terms.device_count; i++)
		elastic_apply(tenant, i);
}

void tenant_set_priority(struct tenant *tenant, int priority)
{
	tenant->terms.priority = priority;
	for (unsigned i = 0; i < tenant->terms.device_count; i++) {
		lessee_set_share(tenant->device[i].lessee, share_of(tenant, i));
		elastic_apply(tenant, i);
	}
}

void tenant_set_on_full(struct tenant *tenant, enum on_full on_full)
{
	bool waited = tenant->terms.on_full == ON_FULL_WAIT;
	bool waits = on_full == ON_FULL_WAIT;
	if (on_full == tenant->terms.on_full)
		return;
	if (waited)
		admission_stop(tenant);
	tenant->terms.on_full = on_full;
	tenant->node->waiter_count += waits;
	tenant->node->waiter_count -= waited;
	if (waits)
		admission_begin(tenant);
	admission_soon(tenant->node);
}

double tenant_limit_pct(const struct tenant *tenant, unsigned device)
{
	return share_of(tenant, device).limit_pct;
}

void tenant_scale_share(struct tenant *tenant, double scale)
{
	tenant->share_scale = scale;
	for (unsigned i = 0; i < tenant->terms.device_count; i++) {
		lessee_set_share(tenant->device[i].lessee, share_of(tenant, i));
		elastic_apply(tenant, i);
	}
}

void tenant_set_quota(struct tenant *tenant, unsigned device, uint64_t quota_bytes)
{
	tenant->terms.device[device].promise.quota_bytes = quota_bytes;
	tenant_publish_quota(tenant, device);
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
		lessee_set_paused(tenant->device[i].lessee, paused || swap_turns_is_away(tenant));
	admission_soon(tenant->node);
	swap_turns_look(tenant->node);
}
