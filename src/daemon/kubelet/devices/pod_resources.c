#include "daemon/kubelet/devices/pod_resources.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/kubelet/proto/pod_resources.pb-c.h"
#include "daemon/util/worker.h"
#include "net/grpc_client.h"

#define METHOD "/v1.PodResourcesLister/List"
#define PATIENCE_NS (10 * NSEC_PER_SEC)
#define STALE_NS (60 * NSEC_PER_SEC)
#define REPLY_MOST_BYTES (16 << 20) /* enough for all devices of several hundred pods */

struct pod_resources {
	struct worker worker;
	char *socket, *resource;
	const struct slices *slices;
	/* guarded by the worker's lock: */
	bool is_wanted, is_known;
	uint64_t read_ns, answers;
	struct slice_set held;
	Podresources__ListResponse *list; /* the kubelet's last answer; NULL: none */
	/* used only by the thread: */
	bool has_failed; /* the last call failed and was logged */
};

static void add_slices(const struct slices *slices, const char *resource,
		       const Podresources__ContainerResources *c, struct slice_set *set)
{
	for (size_t d = 0; d < c->n_devices; d++) {
		const Podresources__ContainerDevices *devices = c->devices[d];
		unsigned card, number;
		if (strcmp(devices->resource_name, resource) != 0)
			continue;
		for (size_t n = 0; n < devices->n_device_ids; n++)
			if (slice_parse(slices, devices->device_ids[n], &card, &number, NULL) >= 0)
				slots_add(&set->card[card], number);
	}
}

static int read_list(const struct slices *slices, const char *resource, const uint8_t *data,
		     size_t size, struct slice_set *ret, Podresources__ListResponse **ret_list)
{
	struct slice_set set = { 0 };
	Podresources__ListResponse *list = podresources__list_response__unpack(NULL, size, data);
	if (!list)
		return -EPROTO;
	for (size_t i = 0; i < list->n_pod_resources; i++)
		for (size_t k = 0; k < list->pod_resources[i]->n_containers; k++)
			add_slices(slices, resource, list->pod_resources[i]->containers[k], &set);
	*ret = set;
	*ret_list = list;
	return 0;
}

int pod_resources_read(const struct slices *slices, const char *resource, const uint8_t *data,
		       size_t size, struct slice_set *ret)
{
	Podresources__ListResponse *list;
	int r = read_list(slices, resource, data, size, ret, &list);
	if (r >= 0)
		podresources__list_response__free_unpacked(list, NULL);
	return r;
}

static int call(struct pod_resources *p, struct slice_set *ret,
		Podresources__ListResponse **ret_list, struct error *err)
{
	cleanup(net_link_close) struct net_link link = { .fd = -1 };
	struct grpc_request request = { .method = METHOD, .most_bytes = REPLY_MOST_BYTES };
	struct grpc_reply reply;
	int r = net_link_open(&link, p->socket, p->worker.stop_fd, clock_now_ns() + PATIENCE_NS);
	if (r >= 0)
		r = grpc_call_unary(&link, &request, &reply);
	if (r < 0)
		return error_set_errno(err, -r, "%s", p->socket);
	if (reply.status != GRPC_OK)
		return error_set(err, EPROTO, "%s: %s (gRPC status %d)", p->socket, reply.text,
				 (int)reply.status);
	r = read_list(p->slices, p->resource, reply.message, reply.size, ret, ret_list);
	free(reply.message);
	return r < 0 ? error_set(err, EPROTO, "%s: the kubelet's answer is not a list of pods",
				 p->socket)
		     : 0;
}

static void log_outcome(struct pod_resources *p, int r, const struct error *err)
{
	if (r < 0 && !p->has_failed)
		log_info("the kubelet can't be asked which devices pods hold: %s; trying again",
			 err->text);
	p->has_failed = r < 0;
}

static void *run(void *data)
{
	struct pod_resources *p = data;
	prctl(PR_SET_NAME, "allot-pods");
	pthread_mutex_lock(&p->worker.lock);
	while (!p->worker.stop) {
		struct slice_set held;
		Podresources__ListResponse *list;
		struct error err = { 0 };
		if (!p->is_wanted) {
			pthread_cond_wait(&p->worker.wake, &p->worker.lock);
			continue;
		}
		p->is_wanted = false;
		uint64_t begun_ns = clock_now_ns();
		pthread_mutex_unlock(&p->worker.lock);
		int r = call(p, &held, &list, &err);
		log_outcome(p, r, &err);
		pthread_mutex_lock(&p->worker.lock);
		if (r < 0)
			continue;
		if (p->list)
			podresources__list_response__free_unpacked(p->list, NULL);
		p->list = list;
		p->answers++;
		p->held = held;
		p->read_ns = begun_ns;
		p->is_known = true;
	}
	pthread_mutex_unlock(&p->worker.lock);
	return NULL;
}

void pod_resources_request(struct pod_resources *p)
{
	pthread_mutex_lock(&p->worker.lock);
	p->is_wanted = true;
	pthread_cond_signal(&p->worker.wake);
	pthread_mutex_unlock(&p->worker.lock);
}

static bool is_fresh(const struct pod_resources *p)
{
	return p->is_known && clock_now_ns() - p->read_ns < STALE_NS;
}

bool pod_resources_get(struct pod_resources *p, struct slice_set *ret)
{
	pthread_mutex_lock(&p->worker.lock);
	bool is_known = is_fresh(p);
	if (is_known)
		*ret = p->held;
	pthread_mutex_unlock(&p->worker.lock);
	return is_known;
}

uint64_t pod_resources_answers(struct pod_resources *p)
{
	pthread_mutex_lock(&p->worker.lock);
	uint64_t answers = p->answers;
	pthread_mutex_unlock(&p->worker.lock);
	return answers;
}

uint64_t pod_resources_time_ns(struct pod_resources *p)
{
	pthread_mutex_lock(&p->worker.lock);
	uint64_t read_ns = p->is_known ? p->read_ns : 0;
	pthread_mutex_unlock(&p->worker.lock);
	return read_ns;
}

/* Joins the container's devices in one list, because the kubelet may list each in an entry of its own. */
static int visit_container(const char *resource, const Podresources__PodResources *pod,
			   const Podresources__ContainerResources *c, pod_resources_holder each,
			   void *data)
{
	struct pod_holder holder = { .pod_namespace = pod->namespace_,
				     .pod = pod->name,
				     .container = c->name };
	size_t most = 0;
	for (size_t d = 0; d < c->n_devices; d++)
		if (!strcmp(c->devices[d]->resource_name, resource))
			most += c->devices[d]->n_device_ids;
	if (!most)
		return 0;
	cleanup_free const char **id = calloc(most, sizeof(*id));
	if (!id)
		return -ENOMEM;
	for (size_t d = 0; d < c->n_devices; d++)
		for (size_t n = 0; !strcmp(c->devices[d]->resource_name, resource) &&
				   n < c->devices[d]->n_device_ids;
		     n++)
			id[holder.count++] = c->devices[d]->device_ids[n];
	holder.id = id;
	each(data, &holder);
	return 0;
}

static int visit_all(const struct pod_resources *p, pod_resources_holder each, void *data)
{
	int r = 0;
	for (size_t i = 0; i < p->list->n_pod_resources; i++) {
		const Podresources__PodResources *pod = p->list->pod_resources[i];
		for (size_t k = 0; r >= 0 && k < pod->n_containers; k++)
			r = visit_container(p->resource, pod, pod->containers[k], each, data);
	}
	return r;
}

/* Holds the worker's lock during the callbacks, so the thread may have to wait for them. */
bool pod_resources_each(struct pod_resources *p, pod_resources_holder each, void *data,
			uint64_t *ret_answer, uint64_t *ret_time_ns)
{
	pthread_mutex_lock(&p->worker.lock);
	*ret_answer = p->answers;
	*ret_time_ns = p->read_ns;
	bool is_known = is_fresh(p) && visit_all(p, each, data) >= 0;
	pthread_mutex_unlock(&p->worker.lock);
	return is_known;
}

static void free_parts(struct pod_resources *p)
{
	if (p->list)
		podresources__list_response__free_unpacked(p->list, NULL);
	free(p->socket);
	free(p->resource);
	free(p);
}

int pod_resources_start(const char *socket, const char *resource, const struct slices *slices,
			struct pod_resources **ret, struct error *err)
{
	struct pod_resources *p = calloc(1, sizeof(*p));
	if (!p)
		return error_set_errno(err, ENOMEM, "%s", socket);
	p->slices = slices;
	p->socket = strdup(socket);
	p->resource = strdup(resource);
	int r = p->socket && p->resource ? 0 : -ENOMEM;
	if (r < 0)
		error_set_errno(err, ENOMEM, "%s", socket);
	else
		r = worker_start(&p->worker, "pod resources", run, p, err);
	if (r < 0)
		free_parts(p);
	else
		*ret = p;
	return r;
}

struct pod_resources *pod_resources_stop(struct pod_resources *p)
{
	if (!p)
		return NULL;
	worker_stop(&p->worker);
	free_parts(p);
	return NULL;
}
