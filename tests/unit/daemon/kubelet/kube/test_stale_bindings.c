/* A binding that took too long: the test is the API server and the watch of the pods. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "daemon/kubelet/kube/binding.h"
#include "daemon/kubelet/kube/stale_bindings.h"
#include "kube/client/kube_event.h"

static const struct kube_pod *pod;
static struct alarm *alarm_of; /* of the stale bindings */
static unsigned events;

/* ---- in place of the binding's write ---- */

static struct {
	unsigned count;
	binding_done done; /* NULL: no write is under way */
	void *data;
} write_of;

struct binding *binding_fail(struct kube_client *client, const char *node,
			     const struct kube_pod *of, binding_done done, void *data)
{
	assert_null(write_of.done);
	assert_ptr_equal(of, pod);
	write_of.count++;
	write_of.done = done;
	write_of.data = data;
	return (struct binding *)&write_of;
}

struct binding *binding_unlock(struct kube_client *client, const char *node,
			       const struct kube_pod *of, binding_done done, void *data)
{
	return NULL;
}

struct binding *binding_drop(struct binding *binding)
{
	if (binding)
		write_of.done = NULL;
	return NULL;
}

static void end_write(int code)
{
	binding_done done = write_of.done;
	struct error err = { .code = code };
	assert_non_null(done);
	write_of.done = NULL;
	done(write_of.data, &err);
}

/* ---- stand-ins for the rest of the daemon ---- */

const struct kube_pod *const *pods_all(const struct node_pods *pods, size_t *ret_count)
{
	*ret_count = 1;
	return &pod;
}

const struct kube_pod *pods_find(const struct node_pods *pods, const char *uid)
{
	return strcmp(pod->uid, uid) ? NULL : pod;
}

int node_object_lock(const struct node_object *object, struct node_lock *ret, struct error *err)
{
	return -ENOENT;
}

struct reactor *kube_client_reactor(struct kube_client *client)
{
	return NULL;
}

void alarm_set(struct reactor *reactor, struct alarm *alarm, uint64_t in_ns)
{
	alarm_of = alarm;
}

void alarm_clear(struct reactor *reactor, struct alarm *alarm)
{
	alarm_of = NULL;
}

void event_send(struct kube_client *client, const struct event_about *about, bool is_warning,
		const char *reason, const char *message, const char *host)
{
	events++;
}

/* ---- tests ---- */

static void test_a_failed_write_is_tried_again(void **state)
{
	struct kube_pod stuck = { .uid = "u",
				  .name = "p",
				  .pod_namespace = "ns",
				  .to_allocate = "GPU-a,NVIDIA,1,1:;",
				  .bind_time = "1000000000",
				  .phase = POD_PENDING,
				  .bind_phase = BIND_ALLOCATING };
	pod = &stuck;
	struct stale_bindings *g = stale_bindings_start(NULL, "n", NULL, NULL);
	stale_bindings_check(g);
	assert_int_equal(write_of.count, 1);
	end_write(EACCES);
	/* Neither at once nor at each change of the pods. */
	stale_bindings_check(g);
	assert_null(write_of.done);
	unsigned rings = 0;
	for (; !write_of.done; rings++) {
		assert_true(rings < 100);
		alarm_of->handler(alarm_of->data);
		stale_bindings_check(g);
	}
	assert_true(rings > 1);
	assert_int_equal(write_of.count, 2);
	end_write(0);
	/* The watch does not show it yet. */
	for (unsigned i = 0; i < 2 * rings; i++)
		alarm_of->handler(alarm_of->data);
	stuck.bind_phase = BIND_FAILED;
	stale_bindings_check(g);
	assert_int_equal(write_of.count, 2);
	assert_int_equal(events, 1);
	stale_bindings_stop(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_failed_write_is_tried_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
