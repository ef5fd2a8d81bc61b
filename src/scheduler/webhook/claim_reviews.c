#include "scheduler/webhook/claim_reviews.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <time.h>

#include "base/clock.h"
#include "base/json.h"
#include "kube/client/patch.h"
#include "kube/dra/slice.h"
#include "kube/util/timestamp.h"
#include "scheduler/webhook/template_sweep.h"

#define PATH_MAX_BYTES 200
#define SLICES DRA_API "/resourceslices?fieldSelector=spec.driver%3D" DRA_DRIVER "&limit=500"
#define SIZES_NS (10 * NSEC_PER_SEC) /* how long GPU sizes are cached */
/* limit of one call to the API server: two calls fit in the webhook's limit of 10 s */
#define CALL_NS (4 * NSEC_PER_SEC)

struct claim_review {
	struct claim_reviews *all;
	json_t *review;
	struct webhook_claims claims;
	/* GPU sizes for claims.sizes_mib; incomplete until the API server's last page was read */
	json_t *sizes_mib;
	json_t *answer; /* the review's answer; void while claims.needs_sizes is set */
	size_t made;
	struct kube_call *call;
	claim_reviewed done;
	void *data;
	LIST_ENTRY(claim_review) link;
};

struct claim_reviews {
	struct kube_client *client;
	const struct webhook_terms *terms;
	json_t *sizes_mib; /* of all GPUs, as last read; NULL if never read */
	uint64_t sizes_ns;
	LIST_HEAD(, claim_review) under_way;
};

static void drop(struct claim_review *r)
{
	kube_call_drop(r->call);
	LIST_REMOVE(r, link);
	json_decref(r->review);
	json_decref(r->claims.templates);
	json_decref(r->sizes_mib);
	json_decref(r->answer);
	free(r);
}

/* Passes ownership of `answer` to the callback. */
static void finish(struct claim_review *r, json_t *answer)
{
	claim_reviewed done = r->done;
	void *data = r->data;
	drop(r);
	done(data, answer);
}

static void deny(struct claim_review *r, const struct error *why)
{
	finish(r, webhook_deny(r->review, why));
}

static void make_next(struct claim_review *r);

static void template_is_there(struct claim_review *r)
{
	r->made++;
	make_next(r);
}

static void deny_for_template(struct claim_review *r, const struct kube_answer *answer)
{
	struct error why = answer->err;
	error_add(&why, -why.code,
		  "a ResourceClaimTemplate for the pod could not be created or updated");
	deny(r, &why);
}

/* Adds path and timeout to `request`, and sends it for the next template. `name`: "" if the request creates that template. */
static void send_request(struct claim_review *r, struct kube_request request, const char *name,
			 kube_done done)
{
	const json_t *template = json_array_get(r->claims.templates, r->made);
	const json_t *metadata = json_object_get(template, "metadata");
	char path[PATH_MAX_BYTES];
	snprintf(path, sizeof(path), DRA_API "/namespaces/%s/resourceclaimtemplates%s%s",
		 json_string_value(json_object_get(metadata, "namespace")), *name ? "/" : "", name);
	request.path = path;
	request.timeout_ns = CALL_NS;
	r->call = request.body ? kube_call_start(r->all->client, &request, NULL, done, r) : NULL;
	if (!r->call)
		finish(r, NULL);
}

static void template_made(void *data, const struct kube_answer *answer)
{
	struct claim_review *r = data;
	r->call = NULL;
	/* HTTP_CONFLICT: another pod's review has created the template. Templates of one name have the same content. */
	if (answer->err.code && answer->status != HTTP_CONFLICT)
		deny_for_template(r, answer);
	else
		template_is_there(r);
}

static void make_template(struct claim_review *r)
{
	json_t *template = json_array_get(r->claims.templates, r->made);
	cleanup_free char *body = json_dumps(template, JSON_COMPACT);
	send_request(r, (struct kube_request){ .method = "POST", .type = KUBE_JSON, .body = body },
		     "", template_made);
}

static void template_touched(void *data, const struct kube_answer *answer)
{
	struct claim_review *r = data;
	r->call = NULL;
	if (answer->status == HTTP_NOT_FOUND)
		make_template(r);
	else if (answer->err.code)
		deny_for_template(r, answer);
	else
		template_is_there(r);
}

/* Marks the next template as requested now (template_sweep.h); a missing one is created. Answers after the last one. */
static void make_next(struct claim_review *r)
{
	json_t *template = json_array_get(r->claims.templates, r->made);
	json_t *metadata = json_object_get(template, "metadata");
	char requested[TIMESTAMP_MAX];
	const struct patch_pair when = { TEMPLATE_REQUESTED, requested };
	int64_t now_s = (int64_t)time(NULL);
	if (!template) {
		finish(r, json_incref(r->answer));
		return;
	}
	timestamp_format_rfc3339(now_s - now_s % TEMPLATE_REQUESTED_STEP_S, requested);
	json_object_set_new(metadata, "annotations",
			    json_pack("{s:s}", TEMPLATE_REQUESTED, requested));
	cleanup_free char *body = patch_metadata(&when, 1, NULL, 0, NULL);
	send_request(
		r,
		(struct kube_request){ .method = "PATCH", .type = KUBE_MERGE_PATCH, .body = body },
		json_string_value(json_object_get(metadata, "name")), template_touched);
}

static bool is_dry_run(const json_t *review)
{
	return json_is_true(json_object_get(json_object_get(review, "request"), "dryRun"));
}

/* Whether the review can be answered without the API server. */
static bool is_complete(const struct claim_review *r)
{
	return !r->claims.needs_sizes &&
	       (!json_array_size(r->claims.templates) || is_dry_run(r->review));
}

static int review(struct claim_review *r, struct error *err)
{
	json_decref(r->answer);
	json_array_clear(r->claims.templates);
	r->claims.needs_sizes = false;
	r->answer = webhook_review(r->all->terms, r->review, &r->claims, err);
	return r->answer ? 0 : -err->code;
}

static int review_with_sizes(struct claim_review *r, struct error *err)
{
	r->claims.sizes_mib = r->sizes_mib;
	return review(r, err);
}

static int request_sizes(struct claim_review *r, const char *page);

static void sizes_known(struct claim_review *r)
{
	struct claim_reviews *all = r->all;
	struct error why = { 0 };
	json_incref(r->sizes_mib);
	json_decref(all->sizes_mib);
	all->sizes_mib = r->sizes_mib;
	all->sizes_ns = clock_now_ns();
	if (review_with_sizes(r, &why) < 0)
		finish(r, NULL);
	else if (is_complete(r))
		finish(r, json_incref(r->answer));
	else
		make_next(r);
}

static void slices_listed(void *data, const struct kube_answer *answer)
{
	struct claim_review *r = data;
	struct error why = answer->err;
	const json_t *metadata = json_object_get(answer->object, "metadata");
	const char *next = json_string_value(json_object_get(metadata, "continue"));
	r->call = NULL;
	if (why.code) {
		error_add(&why, -why.code,
			  "the memory sizes of the cluster's GPUs, which a request in percent "
			  "needs, could not be read");
		deny(r, &why);
		return;
	}
	if (dra_add_memory_sizes(answer->object, r->sizes_mib) < 0 ||
	    (next && *next && request_sizes(r, next) < 0))
		finish(r, NULL);
	else if (!r->call)
		sizes_known(r);
}

/* Requests a page of GPU sizes. `page`: the API server's token for that page; "" for the first page. */
static int request_sizes(struct claim_review *r, const char *page)
{
	cleanup_free char *path = NULL;
	if (asprintf(&path, "%s%s%s", SLICES, *page ? "&continue=" : "", page) < 0)
		path = NULL;
	const struct kube_request request = { .method = "GET", .path = path, .timeout_ns = CALL_NS };
	if (path)
		r->call = kube_call_start(r->all->client, &request, NULL, slices_listed, r);
	return r->call ? 0 : -ENOMEM;
}

/* Starts a review that needs the API server. Returns 1 or -ENOMEM, like claim_reviews_start(). */
static int start(struct claim_review *r)
{
	if (!r->claims.needs_sizes) {
		make_next(r);
		return 1;
	}
	r->sizes_mib = json_array();
	return r->sizes_mib && request_sizes(r, "") >= 0 ? 1 : -ENOMEM;
}

/* Reviews the pod. A review that needs GPU sizes uses the cached sizes, unless these are older than SIZES_NS. */
static int review_first(struct claim_review *r, struct error *err)
{
	const struct claim_reviews *all = r->all;
	int result = review(r, err);
	if (result < 0 || !r->claims.needs_sizes || !json_array_size(all->sizes_mib) ||
	    clock_now_ns() - all->sizes_ns > SIZES_NS)
		return result;
	r->sizes_mib = json_incref(all->sizes_mib);
	return review_with_sizes(r, err);
}

int claim_reviews_start(struct claim_reviews *reviews, json_t *object, claim_reviewed done,
			void *data, json_t **ret_answer, struct error *err)
{
	struct claim_review *r = calloc(1, sizeof(*r));
	if (!r)
		return error_set_errno(err, ENOMEM, "AdmissionReview");
	*r = (struct claim_review){ .all = reviews,
				    .review = json_incref(object),
				    .claims = { .templates = json_array() },
				    .done = done,
				    .data = data };
	LIST_INSERT_HEAD(&reviews->under_way, r, link);
	int result = review_first(r, err);
	if (result >= 0 && is_complete(r))
		*ret_answer = json_incref(r->answer);
	else if (result >= 0)
		result = start(r);
	if (result <= 0)
		drop(r);
	return result == -ENOMEM ? error_set_errno(err, ENOMEM, "AdmissionReview") : result;
}

struct claim_reviews *claim_reviews_new(struct kube_client *client,
					const struct webhook_terms *terms)
{
	struct claim_reviews *reviews = calloc(1, sizeof(*reviews));
	if (!reviews)
		return NULL;
	*reviews = (struct claim_reviews){ .client = client, .terms = terms };
	LIST_INIT(&reviews->under_way);
	return reviews;
}

struct claim_reviews *claim_reviews_free(struct claim_reviews *reviews)
{
	while (reviews && !LIST_EMPTY(&reviews->under_way))
		drop(LIST_FIRST(&reviews->under_way));
	if (reviews)
		json_decref(reviews->sizes_mib);
	free(reviews);
	return NULL;
}
