/*
 * NodePrepareResources and NodeUnprepareResources. If one claim of a prepare call fails, all claims made by this call are
 * undone, and the reply gives the reasons. Claims of earlier calls stay.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/containers/claims/claims.h"
#include "daemon/kubelet/devices/allocate.h"
#include "daemon/kubelet/devices/dra_key.h"
#include "daemon/kubelet/dra/dra_inside.h"
#include "daemon/kubelet/dra/dra_request.h"
#include "daemon/kubelet/dra/spec_files.h"
#include "daemon/kubelet/endpoint/pack.h"
#include "daemon/state/node/node.h"
#include "kube/dra/resource_claim.h"

/* timeout for the API server; the kubelet waits 45 s for us */
#define PATIENCE_NS (20 * NSEC_PER_SEC)

struct item {
	struct preparation *preparation;
	struct dra_name name;
	/* the call that reads the ResourceClaim; NULL: answered or given up */
	struct kube_call *get;
	struct dra_claim claim;
	bool is_new; /* the tenant was made for this call */
	struct error err;
	char key[TENANT_CLAIM_MAX];
	char cdi_id[DRA_CDI_ID_MAX];
	struct dra_prepared_device *device; /* owned */
};

struct preparation {
	TAILQ_ENTRY(preparation) link;
	struct dra *dra;
	struct grpc_call *call;
	uint64_t begun_ns;
	struct dra_request request; /* owns the names */
	size_t count, waiting;      /* waiting: number of claims that wait for the API server */
	struct item item[];
};

static const char *spec_dir(const struct dra *dra)
{
	return dra->node->config.kube_cdi_dir;
}

static struct preparation *preparation_free(struct preparation *p)
{
	for (size_t i = 0; i < p->count; i++) {
		kube_call_drop(p->item[i].get);
		dra_claim_free(&p->item[i].claim);
		free(p->item[i].device);
	}
	dra_request_free(&p->request);
	free(p);
	return NULL;
}

static void forget(struct preparation *p)
{
	TAILQ_REMOVE(&p->dra->preparing, p, link);
	preparation_free(p);
}

/*
 * "gpu/small" means the alternative "small" of the ResourceClaim's request "gpu". Containers refer to it as "gpu". So names of
 * requests are cut at '/'.
 */
static int list_devices(struct item *item, struct error *err)
{
	item->device = calloc(item->claim.count + 1, sizeof(*item->device));
	if (!item->device)
		return error_set_errno(err, ENOMEM, "claim");
	for (size_t i = 0; i < item->claim.count; i++) {
		const struct dra_result *result = &item->claim.result[i];
		struct dra_prepared_device *d = &item->device[i];
		*d = (struct dra_prepared_device){ .pool = result->pool, .device = result->device };
		snprintf(d->request, sizeof(d->request), "%.*s", (int)strcspn(result->request, "/"),
			 result->request);
	}
	return 0;
}

static int prepare_claim(struct item *item, struct error *err)
{
	struct dra *dra = item->preparation->dra;
	struct claim_request request;
	struct claim *claim;
	char name[REGION_NAME_MAX];
	/* The name is only displayed: it is cut if too long, and gets an id if not unique. */
	snprintf(name, sizeof(name), "%s.%s", item->name.in_namespace, item->name.name);
	int r = dra_request_make(dra->node, dra->node_name, &item->claim, item->key, name,
				 item->name.in_namespace, &request, err);
	if (r >= 0)
		r = list_devices(item, err);
	if (r >= 0)
		r = allocate_request(dra->node, &request, &claim, &item->is_new, err);
	if (r >= 0)
		r = spec_file_write(spec_dir(dra), dra->node->claims, claim, item->name.uid, err);
	spec_file_id(item->name.uid, item->cdi_id);
	return r;
}

static void undo_prepare(struct item *item)
{
	const struct dra *dra = item->preparation->dra;
	if (!item->is_new)
		return;
	claims_undo(dra->node->claims, item->key, "its pod can't be prepared");
	spec_file_remove(spec_dir(dra), item->name.uid, NULL);
	item->is_new = false;
}

static const struct item *failed_item(const struct preparation *p)
{
	for (size_t i = 0; i < p->count; i++)
		if (p->item[i].err.code)
			return &p->item[i];
	return NULL;
}

/* The claim `why` failed, and the pod cannot start without it. So this undoes all claims that the call made. */
static void undo_all(struct preparation *p, const struct item *why)
{
	log_warning("DRA: ResourceClaim %s/%s can't be prepared: %s", why->name.in_namespace,
		    why->name.name, why->err.text);
	for (size_t i = p->count; i-- > 0;) {
		struct item *item = &p->item[i];
		undo_prepare(item);
		if (!item->err.code)
			error_set(&item->err, ECANCELED,
				  "not prepared, because ResourceClaim %.80s of the same call failed: %.300s",
				  why->name.name, why->err.text);
	}
}

/* Returns false if out of memory; the claims are undone then. */
static bool send_reply(struct preparation *p)
{
	cleanup_free struct dra_outcome *outcome = calloc(p->count + 1, sizeof(*outcome));
	for (size_t i = 0; outcome && i < p->count; i++) {
		const struct item *item = &p->item[i];
		outcome[i] = (struct dra_outcome){ .uid = item->name.uid,
						   .error = item->err.code ? item->err.text : NULL,
						   .cdi_id = item->cdi_id,
						   .device = item->device,
						   .count = item->claim.count };
	}
	struct grpc_message *message = outcome ? dra_message_prepared(outcome, p->count) : NULL;
	for (size_t i = 0; !message && i < p->count; i++)
		undo_prepare(&p->item[i]);
	reply_and_end(p->call, message);
	return message;
}

static void count(const struct preparation *p, bool has_failed)
{
	struct dra *dra = p->dra;
	if (has_failed) {
		dra->refused += p->count;
		return;
	}
	dra->prepared += p->count;
	dra->prepare_ns += clock_now_ns() - p->begun_ns;
}

/* Makes the tenants for all claims or for none, and answers. Call when the API server has answered for every claim. */
static void finish(struct preparation *p)
{
	const struct item *failed = failed_item(p);
	for (size_t i = 0; !failed && i < p->count; i++) {
		struct item *item = &p->item[i];
		if (prepare_claim(item, &item->err) < 0)
			failed = item;
	}
	if (failed)
		undo_all(p, failed);
	bool is_sent = send_reply(p);
	count(p, failed || !is_sent);
	forget(p);
}

static void take_claim(struct item *item, json_t *object)
{
	if (dra_claim_read(object, &item->claim, &item->err) < 0)
		return;
	if (strcmp(item->claim.uid, item->name.uid) != 0)
		error_set(&item->err, ESTALE,
			  "the claim was deleted, and another claim has its name: uid %.40s, not %.40s",
			  item->claim.uid, item->name.uid);
}

static void claim_received(void *data, const struct kube_answer *reply)
{
	struct item *item = data;
	struct preparation *p = item->preparation;
	item->get = NULL;
	if (reply->err.code)
		item->err = reply->err;
	else if (reply->object)
		take_claim(item, reply->object);
	else
		error_set(&item->err, EPROTO, "the API server sent no claim");
	if (--p->waiting == 0)
		finish(p);
}

static void call_cancelled(void *data, struct grpc_call *call)
{
	forget(data);
}

static void get_claim(struct item *item)
{
	char path[DRA_CLAIM_PATH_MAX];
	dra_claim_path(&item->name, path);
	item->get = kube_call_start(
		item->preparation->dra->client,
		&(struct kube_request){ .method = "GET", .path = path, .timeout_ns = PATIENCE_NS },
		NULL, claim_received, item);
	if (item->get)
		item->preparation->waiting++;
	else
		error_set_errno(&item->err, ENOMEM, "claim");
}

static void refuse(struct grpc_call *call, int r)
{
	const char *why = r == -E2BIG
				  ? "the call names more ResourceClaims than allotd takes in one call"
			  : r == -ENOMEM ? "allotd is out of memory"
			  : r == -EINVAL ? "the call has an invalid namespace, name or uid"
					 : "the call is not a valid message";
	log_warning("DRA: a call of the kubelet is refused: %s", why);
	grpc_call_end(call, r == -ENOMEM ? GRPC_RESOURCE_EXHAUSTED : GRPC_INVALID_ARGUMENT, why);
}

static int begin(struct dra *dra, struct grpc_call *call, const uint8_t *message, size_t size,
		 struct preparation **ret)
{
	struct dra_request request;
	int r = dra_request_read(message, size, &request);
	struct preparation *p = NULL;
	if (r >= 0) {
		p = calloc(1, sizeof(*p) + request.count * sizeof(p->item[0]));
		r = p ? 0 : -ENOMEM;
	}
	if (r < 0) {
		dra_request_free(&request);
		return r;
	}
	p->dra = dra;
	p->call = call;
	p->begun_ns = clock_now_ns();
	p->request = request;
	p->count = request.count;
	for (size_t i = 0; i < p->count; i++) {
		p->item[i].preparation = p;
		p->item[i].name = request.name[i];
		dra_key_make(&request.name[i], p->item[i].key);
	}
	*ret = p;
	return 0;
}

void dra_prepare(void *data, struct grpc_call *call, const uint8_t *message, size_t size)
{
	struct dra *dra = data;
	struct preparation *p;
	int r = begin(dra, call, message, size, &p);
	if (r < 0) {
		refuse(call, r);
		return;
	}
	TAILQ_INSERT_TAIL(&dra->preparing, p, link);
	grpc_call_keep(call, call_cancelled, p);
	for (size_t i = 0; i < p->count; i++)
		get_claim(&p->item[i]);
	if (!p->waiting)
		finish(p);
}

void dra_prepare_end(struct dra *dra)
{
	struct preparation *p, *next;
	for (p = TAILQ_FIRST(&dra->preparing); p; p = next) {
		next = TAILQ_NEXT(p, link);
		forget(p);
	}
}

/* Fails the prepare calls that still wait for this claim, so that none makes the claim after the kubelet unprepared it. */
static void give_up(struct dra *dra, const char *uid)
{
	struct preparation *p;
	TAILQ_FOREACH(p, &dra->preparing, link)
		for (size_t i = 0; i < p->count; i++)
			if (!strcmp(p->item[i].name.uid, uid) && !p->item[i].err.code)
				error_set(&p->item[i].err, ECANCELED,
					  "the kubelet has unprepared the claim meanwhile");
}

/* A claim that is already gone is no error: after a failed removal of the CDI spec, the kubelet calls again. */
static int release(struct dra *dra, const struct dra_name *name, struct error *err)
{
	char key[TENANT_CLAIM_MAX];
	dra_key_make(name, key);
	give_up(dra, name->uid);
	int r = claims_release(dra->node->claims, key, "the kubelet has unprepared it", err);
	if (r < 0 && r != -ENOENT)
		return r;
	dra->unprepared += r >= 0;
	err->code = 0;
	return spec_file_remove(spec_dir(dra), name->uid, err);
}

void dra_unprepare(void *data, struct grpc_call *call, const uint8_t *message, size_t size)
{
	struct dra *dra = data;
	cleanup(dra_request_free) struct dra_request request;
	int r = dra_request_read(message, size, &request);
	cleanup_free struct dra_outcome *outcome = calloc(request.count + 1, sizeof(*outcome));
	cleanup_free struct error *err = calloc(request.count + 1, sizeof(*err));
	if (r >= 0 && (!outcome || !err))
		r = -ENOMEM;
	for (size_t i = 0; r >= 0 && i < request.count; i++) {
		outcome[i] = (struct dra_outcome){ .uid = request.name[i].uid };
		if (release(dra, &request.name[i], &err[i]) < 0) {
			log_warning("DRA: ResourceClaim %s/%s can't be unprepared: %s",
				    request.name[i].in_namespace, request.name[i].name, err[i].text);
			outcome[i].error = err[i].text;
		}
	}
	struct grpc_message *reply = r < 0 ? NULL : dra_message_unprepared(outcome, request.count);
	if (!reply) {
		refuse(call, r < 0 ? r : -ENOMEM);
		return;
	}
	reply_and_end(call, reply);
}
