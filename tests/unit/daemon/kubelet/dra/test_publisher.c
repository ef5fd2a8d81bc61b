/* The publisher's writes for the API server's answers: the test plays the client and the watch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/kubelet/dra/publisher.h"
#include "daemon/kubelet/kube/node_object.h"
#include "kube/client/watch.h"
#include "../../../fake_kube.h"

#define PATH "/apis/resource.k8s.io/v1/resourceslices"
#define SLICE "node-gpu-0-gpu.allot.dev"

static struct watch_handlers on;
static struct publisher *publisher;

/* ---- in place of the watch and the Node ---- */

struct kube_watch *kube_watch_start(struct kube_client *client, const char *collection,
				    const char *selector, const struct watch_handlers *handlers,
				    void *data)
{
	on = *handlers;
	publisher = data;
	return (struct kube_watch *)&on;
}

struct kube_watch *kube_watch_stop(struct kube_watch *watch)
{
	return NULL;
}

const char *node_object_uid(const struct node_object *object)
{
	return "node-uid";
}

/* ---- the API server ---- */

/* The slice that the call under way sends, as the server stores it. */
static json_t *stored(const char *uid, const char *version)
{
	json_t *object = json_deep_copy(call.body);
	json_t *metadata = json_object_get(object, "metadata");
	json_object_set_new(metadata, "uid", json_string(uid));
	json_object_set_new(metadata, "resourceVersion", json_string(version));
	return object;
}

static json_t *devices(const char *mib)
{
	return json_pack("[{s:s, s:{s:{s:s}}, s:b}]", "name", "gpu-0", "capacity", "memory",
			 "value", mib, "allowMultipleAllocations", true);
}

/* One GPU, whose slice the server has stored as `uid`, or is asked to create if it is NULL. */
static json_t *begin(const char *uid)
{
	assert_non_null(publisher_start(NULL, "node", NULL));
	publisher_set_devices(publisher, devices("100Mi"));
	on.list_begun(publisher);
	on.synced(publisher);
	expect_call("POST", PATH);
	json_t *object = uid ? stored(uid, "10") : NULL;
	if (uid)
		answer_call(201, object);
	return object;
}

/* ---- tests ---- */

static void test_a_late_end_of_an_old_slice(void **state)
{
	json_t *old = begin("old"), *gone = json_deep_copy(old);
	on.deleted(publisher, old);
	expect_call("POST", PATH);
	json_t *new = stored("new", "12");
	answer_call(201, new);
	assert_null(call.done);
	on.deleted(publisher, gone);
	assert_null(call.done);
	on.deleted(publisher, new);
	expect_call("POST", PATH);
	json_decref(old);
	json_decref(gone);
	json_decref(new);
	publisher_stop(publisher);
}

/* Its end came before the answer that it was written. */
static void test_a_slice_that_is_not_there_is_made_anew(void **state)
{
	json_t *object = begin("old");
	publisher_set_devices(publisher, devices("50Mi"));
	expect_call("PUT", PATH "/" SLICE);
	answer_call(404, NULL);
	expect_call("POST", PATH);
	answer_call(404, NULL);
	assert_null(call.done);
	uint64_t count, failures;
	publisher_count(publisher, &count, &failures);
	assert_int_equal(failures, 1);
	json_decref(object);
	publisher_stop(publisher);
}

/* The server's slices are unknown until its list is complete. */
static void test_nothing_is_written_amid_a_list(void **state)
{
	json_t *object = begin("old");
	on.list_begun(publisher);
	publisher_refresh(publisher);
	assert_null(call.done);
	on.object(publisher, object);
	assert_null(call.done);
	on.synced(publisher);
	assert_null(call.done);
	json_decref(object);
	publisher_stop(publisher);
}

static unsigned count_warnings(int fd)
{
	char text[8192];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
	unsigned count = 0;
	assert_in_range(n, 0, sizeof(text) - 2);
	text[n] = '\0';
	for (const char *at = text; (at = strstr(at, "only whole GPUs can be given")); at++)
		count++;
	return count;
}

/* The server stores the object without the field that it does not know. */
static json_t *answer_without_shares(int status, const char *version)
{
	json_t *object = stored("one", version), *device;
	size_t i;
	json_array_foreach(json_object_get(json_object_get(object, "spec"), "devices"), i, device)
	{
		json_object_del(device, "allowMultipleAllocations");
	}
	answer_call(status, object);
	return object;
}

static void test_dropped_shares_are_logged_once(void **state)
{
	int log = memfd_create("log", 0), before = dup(STDERR_FILENO);
	assert_true(log >= 0 && before >= 0);
	dup2(log, STDERR_FILENO);
	begin(NULL);
	json_decref(answer_without_shares(201, "10"));
	assert_int_equal(count_warnings(log), 1);
	/* A cordoned GPU's slice is empty. */
	json_t *tainted = devices("100Mi");
	json_object_set_new(json_array_get(tainted, 0), "taints", json_array());
	publisher_set_devices(publisher, tainted);
	expect_call("PUT", PATH "/" SLICE "?dryRun=All");
	json_t *object = stored("one", "10");
	json_object_del(json_array_get(json_object_get(json_object_get(object, "spec"), "devices"),
				       0),
			"taints");
	answer_call(200, object);
	json_decref(object);
	expect_call("PUT", PATH "/" SLICE);
	json_decref(answer_without_shares(200, "11"));
	publisher_set_devices(publisher, devices("100Mi"));
	expect_call("PUT", PATH "/" SLICE);
	json_decref(answer_without_shares(200, "12"));
	assert_null(call.done);
	unsigned count = count_warnings(log);
	dup2(before, STDERR_FILENO);
	assert_int_equal(count, 1);
	close(before);
	close(log);
	publisher_stop(publisher);
}

static unsigned left; /* allocations that succeed */

static void *take_memory(size_t size)
{
	return left && left-- ? malloc(size) : NULL;
}

/* Wherever memory runs out, the slice is written later. */
static void test_what_memory_lacks_for_is_tried_again(void **state)
{
	unsigned most = 0;
	json_set_alloc_funcs(take_memory, free);
	left = UINT32_MAX;
	begin(NULL);
	/* As if the server had forgotten the request. */
	answer_call(500, NULL);
	while (!call.done) {
		assert_true(most < 1000);
		assert_non_null(ringing);
		struct alarm *alarm = ringing;
		ringing = NULL;
		left = most++;
		alarm->handler(alarm->data);
	}
	left = UINT32_MAX;
	assert_true(most > 10);
	expect_call("POST", PATH);
	publisher_stop(publisher);
	json_set_alloc_funcs(malloc, free);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_late_end_of_an_old_slice),
		cmocka_unit_test(test_a_slice_that_is_not_there_is_made_anew),
		cmocka_unit_test(test_nothing_is_written_amid_a_list),
		cmocka_unit_test(test_dropped_shares_are_logged_once),
		cmocka_unit_test(test_what_memory_lacks_for_is_tried_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
