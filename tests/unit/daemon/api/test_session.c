/* The control protocol: every request, every refusal, on a session without a socket. */
#include "../fixture.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CREATE(more) "{\"version\":1,\"op\":\"create\"," more "}"

static void ok(struct fixture *f, const char *line)
{
	json_decref(fixture_ok(f, line));
}

static void test_hello(void **state)
{
	struct fixture *f = *state;
	json_t *r = fixture_ok(f, "{\"version\":1,\"op\":\"hello\"}");
	const char *daemon = NULL;
	int pid = 0, simulated = 1;
	json_int_t epoch = 0;
	json_t *devices;
	assert_int_equal(json_unpack(r, "{s:i,s:s,s:I,s:b,s:o}", "pid", &pid, "daemon", &daemon,
				     "epoch", &epoch, "simulated", &simulated, "devices", &devices),
			 0);
	assert_int_equal(pid, getpid());
	assert_string_equal(daemon, "allotd " ALLOT_VERSION);
	assert_true(epoch > 0 && (uint64_t)epoch == f->node->epoch);
	assert_false(simulated);
	assert_int_equal(json_array_size(devices), 2);
	json_decref(r);
}

static void test_topology(void **state)
{
	json_t *r = fixture_ok(*state, "{\"version\":1,\"op\":\"topology\"}");
	json_t *wanted = json_loads(
		"{\"version\":1,\"devices\":["
		"{\"index\":0,\"uuid\":\"GPU-00000000-0000-0000-0000-000000000001\","
		"\"name\":\"Pretended\",\"pci\":\"0000:01:00.0\",\"numa\":3},"
		"{\"index\":1,\"uuid\":\"GPU-00000000-0000-0000-0000-000000000002\","
		"\"name\":\"Pretended\",\"pci\":null,\"numa\":null}],"
		"\"links\":[{\"devices\":[0,1],\"nvlinks\":2,\"pcie\":\"PXB\",\"score\":240}],"
		"\"tree\":{\"pcie\":\"PXB\",\"numa\":null,\"devices\":[0,1],\"groups\":[]}}",
		0, NULL);
	json_object_del(r, "ok");
	assert_non_null(wanted);
	assert_true(json_equal(r, wanted));
	json_decref(wanted);
	json_decref(r);
}

static void test_bad_requests(void **state)
{
	static const struct {
		const char *line;
		int code;
		const char *word;
	} rows[] = {
		{ "", EINVAL, "not JSON" },
		{ "{", EINVAL, "not JSON" },
		{ "\xff\xfe", EINVAL, "not JSON" },
		{ "[]", EINVAL, "one JSON object" },
		{ "{\"op\":\"hello\",\"op\":\"list\"}", EINVAL, "not JSON" },
		{ "{\"op\":\"hello\"}", EINVAL, "version: missing" },
		{ "{\"version\":\"1\",\"op\":\"hello\"}", EINVAL, "version: must be a whole number" },
		{ "{\"version\":2,\"op\":\"hello\"}", EPROTONOSUPPORT, "version 2" },
		{ "{\"version\":1}", EINVAL, "op: missing" },
		{ "{\"version\":1,\"op\":7}", EINVAL, "op: must be a string" },
		{ "{\"version\":1,\"op\":\"dance\"}", EOPNOTSUPP, "dance" },
		{ CREATE("\"name\":7"), EINVAL, "name: must be a string" },
		{ CREATE("\"name\":\"\""), EINVAL, "name" },
		{ CREATE("\"name\":\"a b\""), EINVAL, "name" },
		{ CREATE("\"name\":\"../x\""), EINVAL, "name" },
		{ CREATE("\"name\":\"a\\u0000b\""), EINVAL, "" },
		{ CREATE("\"pid\":-4"), EINVAL, "pid: -4" },
		{ CREATE("\"hold\":1"), EINVAL, "hold: must be true or false" },
		{ CREATE("\"priority\":1e9"), EINVAL, "priority: must be a whole number" },
		{ CREATE("\"priority\":101"), EINVAL, "priority: 101: must be from -100 to 100" },
		{ CREATE("\"priority\":-101"), EINVAL, "priority: -101: must be from -100 to 100" },
		{ CREATE("\"elastic\":\"on\""), EINVAL, "elastic: must be true or false" },
		{ CREATE("\"on_full\":\"explode\""), EINVAL, "on_full: 'explode'" },
		{ CREATE("\"on_full\":\"wait\""), EINVAL,
		  "memory_bytes (--memory): missing: on_full 'wait' needs" },
		{ CREATE("\"on_full\":\"swap\""), EINVAL, "needs a quota" },
		{ CREATE("\"on_full\":\"swap\",\"devices\":[{},{}]"), EINVAL, "needs a quota" },
		{ CREATE("\"on_full\":\"swap\",\"swap_arena_bytes\":0"), EINVAL,
		  "swap_arena_bytes: 0" },
		{ CREATE("\"swap_arena_bytes\":1048576"), EINVAL,
		  "swap_arena_bytes: possible only with on_full 'swap'" },
		{ CREATE("\"devices\":3"), EINVAL, "devices: must be a list" },
		{ CREATE("\"devices\":[]"), EINVAL, "devices: must be a list of 1 to 16" },
		{ CREATE("\"devices\":[3]"), EINVAL, "devices: must be a list of objects" },
		{ CREATE("\"devices\":[{\"index\":2}]"), ENODEV, "no such GPU: must be 0 to 1" },
		{ CREATE("\"devices\":[{\"index\":-1}]"), EINVAL, "index: -1" },
		{ CREATE("\"devices\":[{\"index\":0},{\"index\":0}]"), EINVAL,
		  "GPU 0 is named twice" },
		{ CREATE("\"devices\":[{},{},{}]"), ENODEV,
		  "the request needs 3 GPUs, and the daemon has only 2" },
		{ CREATE("\"devices\":[{\"memory_bytes\":-1}]"), EINVAL, "memory_bytes: -1" },
		{ CREATE("\"devices\":[{\"memory_bytes\":0}]"), EINVAL, "must be above 0" },
		{ CREATE("\"devices\":[{\"memory_bytes\":1.5}]"), EINVAL,
		  "memory_bytes: must be a whole" },
		{ CREATE("\"devices\":[{\"memory_bytes\":9999999999999}]"), ENOSPC,
		  "more than the GPU" },
		{ CREATE("\"devices\":[{\"cores_pct\":\"30\"}]"), EINVAL,
		  "cores_pct: must be a number" },
		{ CREATE("\"devices\":[{\"cores_pct\":150}]"), EINVAL, "cores_pct (--cores) 150" },
		{ CREATE("\"devices\":[{\"cores_pct\":50,\"cores_limit_pct\":20}]"), EINVAL,
		  "is less than cores_pct" },
		{ "{\"version\":1,\"op\":\"set\"}", EINVAL, "name: missing" },
		{ "{\"version\":1,\"op\":\"set\",\"name\":\"x\"}", ENOENT, "no tenant 'x'" },
		{ "{\"version\":1,\"op\":\"pause\",\"name\":\"x\"}", ENOENT, "no tenant 'x'" },
		{ "{\"version\":1,\"op\":\"attach\",\"id\":\"x\"}", ENOENT, "no tenant 'x'" },
		{ "{\"version\":1,\"op\":\"remove\",\"name\":\"x\"}", ENOENT, "no tenant 'x'" },
	};
	struct fixture *f = *state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		fixture_refused(f, rows[i].line, rows[i].code, rows[i].word);
	assert_int_equal(f->node->tenant_count, 0);
}

static void test_create(void **state)
{
	struct fixture *f = *state;
	json_t *r = fixture_ok(f, CREATE("\"name\":\"a\",\"devices\":[{\"index\":1,\"memory_bytes\":"
					 "1048576,\"cores_pct\":30}]"));
	const char *id, *name, *path, *uuid;
	json_int_t quota;
	double cores, limit;
	int index;
	struct stat st;
	assert_int_equal(json_unpack(r, "{s:s,s:s,s:s,s:[{s:i,s:s,s:I,s:f,s:f}]}", "id", &id,
				     "name", &name, "socket", &path, "devices", "index", &index,
				     "uuid", &uuid, "memory_quota_bytes", &quota, "cores_pct",
				     &cores, "cores_limit_pct", &limit),
			 0);
	assert_string_equal(name, "a");
	assert_int_equal(index, 1);
	assert_string_equal(uuid, "GPU-00000000-0000-0000-0000-000000000002");
	assert_int_equal(quota, 1048576);
	assert_true(cores == 30 && limit == 30);
	assert_int_equal(stat(path, &st), 0);
	assert_true(S_ISSOCK(st.st_mode));
	json_decref(r);
	fixture_refused(f, CREATE("\"name\":\"a\""), EEXIST, "'a' is in use");
}

static void test_names_and_cards_are_chosen(void **state)
{
	struct fixture *f = *state;
	ok(f, CREATE("\"pid\":42"));
	ok(f, CREATE("\"pid\":42"));
	struct tenant *a = node_find_tenant(f->node, "p42");
	struct tenant *b = node_find_tenant(f->node, "p42-2");
	assert_non_null(a);
	assert_non_null(b);
	assert_int_equal(a->terms.device[0].card->index, 0);
	assert_int_equal(b->terms.device[0].card->index, 1);
	assert_ptr_equal(node_find_tenant(f->node, a->terms.id), a);
}

static void test_promises(void **state)
{
	struct fixture *f = *state;
	ok(f, CREATE("\"name\":\"rest\",\"devices\":[{\"index\":0}]"));
	struct tenant *rest = node_find_tenant(f->node, "rest");
	assert_int_equal(rest->region.control->device[0].quota_bytes, FAKE_CARD_BYTES);
	ok(f, CREATE("\"name\":\"a\",\"devices\":[{\"index\":0,\"memory_bytes\":5368709120,"
		     "\"cores_pct\":60}]"));
	assert_int_equal(rest->region.control->device[0].quota_bytes, 3 * GIB);
	fixture_refused(f, CREATE("\"devices\":[{\"index\":0,\"memory_bytes\":4294967296}]"),
			ENOSPC, "at most 3 GiB (3072MiB) is unpromised");
	f->node->config.refuse_overcommit = true;
	fixture_refused(f, CREATE("\"devices\":[{\"index\":0,\"cores_pct\":50}]"), ENOSPC,
			"at most 40 % is possible");
	f->node->config.refuse_overcommit = false;
	json_t *reply = fixture_ok(f, CREATE("\"name\":\"b\",\"devices\":[{\"index\":0,"
					     "\"cores_pct\":60}]"));
	const char *warning = json_string_value(
		json_array_get(json_object_get(reply, "warnings"), 0));
	assert_non_null(warning);
	assert_non_null(
		strstr(warning, "add up to 120 %: of the 60 % asked for, 50 % are guaranteed"));
	json_decref(reply);
	ok(f, "{\"version\":1,\"op\":\"set\",\"name\":\"b\",\"priority\":7}");
	assert_int_equal(node_find_tenant(f->node, "b")->terms.priority, 7);
	fixture_refused(f, "{\"version\":1,\"op\":\"set\",\"name\":\"b\",\"priority\":5000}",
			EINVAL, "5000");
	fixture_refused(f, "{\"version\":1,\"op\":\"set\",\"name\":\"b\"}", EINVAL, "devices");
	ok(f, "{\"version\":1,\"op\":\"remove\",\"name\":\"b\"}");
	ok(f, "{\"version\":1,\"op\":\"set\",\"name\":\"a\",\"devices\":[{\"memory_bytes\":"
	      "1073741824}]}");
	assert_int_equal(rest->region.control->device[0].quota_bytes, 7 * GIB);
	ok(f, "{\"version\":1,\"op\":\"remove\",\"name\":\"a\"}");
	assert_int_equal(rest->region.control->device[0].quota_bytes, FAKE_CARD_BYTES);
}

static void hold_a_gib(struct client *c)
{
	c->report->slot[c->reply.slot].device[0].used_bytes = GIB;
}

static const json_t *listed_device(json_t *list)
{
	json_t *tenant = json_array_get(json_object_get(list, "tenants"), 0);
	return json_array_get(json_object_get(tenant, "devices"), 0);
}

static void expect_elastic(struct fixture *f, bool is_on, const char *reason)
{
	json_t *list = fixture_ok(f, "{\"version\":1,\"op\":\"list\"}");
	json_t *tenant = json_array_get(json_object_get(list, "tenants"), 0);
	const json_t *device = listed_device(list);
	assert_int_equal(json_is_true(json_object_get(tenant, "elastic")), is_on);
	assert_string_equal(json_string_value(json_object_get(device, "elastic_reason")), reason);
	assert_true(json_number_value(json_object_get(device, "cores_limit_now_pct")) == 30);
	assert_true(json_number_value(json_object_get(device, "lent_pct")) == 0);
	json_decref(list);
}

static void test_elastic(void **state)
{
	struct fixture *f = *state;
	f->node->config.is_elastic = true;
	ok(f, CREATE("\"name\":\"a\",\"devices\":[{\"index\":0,\"cores_pct\":30}]"));
	expect_elastic(f, true, "unneeded");
	ok(f, "{\"version\":1,\"op\":\"set\",\"name\":\"a\",\"elastic\":false}");
	expect_elastic(f, false, "off");
	ok(f, "{\"version\":1,\"op\":\"set\",\"name\":\"a\",\"elastic\":true}");
	expect_elastic(f, true, "unneeded");
	/* A limit in the request is the tenant's maximum. */
	ok(f,
	   "{\"version\":1,\"op\":\"set\",\"name\":\"a\",\"devices\":[{\"cores_limit_pct\":30}]}");
	expect_elastic(f, true, "off");
	fixture_refused(f, "{\"version\":1,\"op\":\"set\",\"name\":\"a\",\"elastic\":7}", EINVAL,
			"elastic: must be true or false");
}

static void test_set(void **state)
{
	struct fixture *f = *state;
	ok(f, CREATE("\"name\":\"a\",\"devices\":[{\"index\":0,\"memory_bytes\":2147483648}]"));
	struct tenant *t = node_find_tenant(f->node, "a");
	int pid = client_spawn(f, t, 0, hold_a_gib);
	fixture_refused(
		f,
		"{\"version\":1,\"op\":\"set\",\"name\":\"a\",\"devices\":[{\"memory_bytes\":1000}]}",
		EBUSY, "at least 1 GiB (1024MiB) is needed");
	fixture_refused(f, "{\"version\":1,\"op\":\"set\",\"name\":\"a\"}", EINVAL,
			"devices: missing");
	fixture_refused(f,
			"{\"version\":1,\"op\":\"set\",\"name\":\"a\",\"devices\":[{\"index\":1}]}",
			ENODEV, "does not use GPU 1");
	fixture_refused(
		f, "{\"version\":1,\"op\":\"set\",\"name\":\"a\",\"devices\":[{},{\"index\":0}]}",
		EINVAL, "twice");
	assert_int_equal(t->region.control->device[0].quota_bytes, 2 * GIB);
	json_t *r = fixture_ok(
		f, "{\"version\":1,\"op\":\"set\",\"name\":\"a\",\"devices\":[{"
		   "\"memory_bytes\":1073741824,\"cores_pct\":20,\"cores_limit_pct\":80}]}");
	json_int_t quota = 0;
	assert_int_equal(json_unpack(r, "{s:[{s:I}]}", "devices", "memory_quota_bytes", &quota), 0);
	assert_int_equal(quota, GIB);
	json_decref(r);
	assert_int_equal(t->region.control->device[0].quota_bytes, GIB);
	assert_int_equal(t->region.control->device[0].cores_pct_x100, 2000);
	assert_int_equal(t->region.control->device[0].limit_pct_x100, 8000);
	client_kill(pid);
}

static void test_set_needs_an_index(void **state)
{
	struct fixture *f = *state;
	ok(f, CREATE("\"name\":\"two\",\"devices\":[{\"index\":1},{\"index\":0}]"));
	fixture_refused(f, "{\"version\":1,\"op\":\"set\",\"name\":\"two\",\"devices\":[{}]}",
			EINVAL, "has 2 GPUs");
	ok(f, "{\"version\":1,\"op\":\"set\",\"name\":\"two\",\"devices\":[{\"index\":0,"
	      "\"cores_limit_pct\":25}]}");
	struct tenant *t = node_find_tenant(f->node, "two");
	assert_int_equal(t->region.control->device[1].limit_pct_x100, 2500);
	assert_int_equal(t->region.control->device[0].limit_pct_x100, 10000);
}

static void test_pause(void **state)
{
	struct fixture *f = *state;
	ok(f, CREATE("\"name\":\"a\""));
	struct tenant *t = node_find_tenant(f->node, "a");
	ok(f, "{\"version\":1,\"op\":\"pause\",\"name\":\"a\"}");
	ok(f, "{\"version\":1,\"op\":\"pause\",\"name\":\"a\"}");
	fixture_until(f, lease_state_of(t->region.control->device[0].lease) == LEASE_STOP);
	json_t *r = fixture_ok(f, "{\"version\":1,\"op\":\"list\"}");
	const char *text = NULL;
	assert_int_equal(json_unpack(r, "{s:[{s:s}]}", "tenants", "state", &text), 0);
	assert_string_equal(text, "paused");
	json_decref(r);
	ok(f, "{\"version\":1,\"op\":\"resume\",\"name\":\"a\"}");
	fixture_until(f, lease_state_of(t->region.control->device[0].lease) == LEASE_FREE);
}

/* A client that waits for a move is told that a later request has reversed it. */
static void test_a_poll_of_a_reversed_move(void **state)
{
	struct fixture *f = *state;
	static const char polls_leaving[] =
		"{\"version\":1,\"op\":\"pause\",\"name\":\"a\",\"swap_out\":true,\"poll\":true}";
	static const char polls_return[] =
		"{\"version\":1,\"op\":\"resume\",\"name\":\"a\",\"poll\":true}";
	ok(f, CREATE("\"name\":\"a\",\"devices\":[{\"index\":0}]"));
	struct tenant *t = node_find_tenant(f->node, "a");
	ok(f, polls_return);
	fixture_refused(f, polls_leaving, ECANCELED, "the tenant was resumed");
	t->terms.swapped_out = true;
	ok(f, polls_leaving);
	fixture_refused(f, polls_return, ECANCELED, "paused again with --swap-out");
	t->terms.swapped_out = false;
}

static void test_others_tenants(void **state)
{
	struct fixture *f = *state;
	ok(f, CREATE("\"name\":\"a\""));
	f->session.uid = 12345;
	f->session.is_admin = false;
	fixture_refused(f, "{\"version\":1,\"op\":\"pause\",\"name\":\"a\"}", EPERM,
			"belongs to uid");
	fixture_refused(f, "{\"version\":1,\"op\":\"remove\",\"name\":\"a\"}", EPERM,
			"belongs to uid");
	fixture_refused(f, "{\"version\":1,\"op\":\"attach\",\"id\":\"a\"}", EPERM,
			"belongs to uid");
	ok(f, "{\"version\":1,\"op\":\"list\"}");
	f->session.is_admin = true;
	ok(f, "{\"version\":1,\"op\":\"pause\",\"name\":\"a\"}");
}

/* One user must not take all places of a GPU. Root and private daemons have no such limit. */
static void test_tenants_of_one_user(void **state)
{
	struct fixture *f = *state;
	f->node->is_private = false;
	f->session.is_admin = false;
	f->session.uid = 12345;
	for (unsigned i = 0; i < SESSION_USER_TENANTS; i++) {
		char request[100];
		snprintf(request, sizeof(request), CREATE("\"name\":\"a%u\""), i);
		ok(f, request);
	}
	fixture_refused(f, CREATE("\"name\":\"more\""), EDQUOT, "the most that one user may have");
	fixture_refused(f, "{\"version\":1,\"op\":\"claim\",\"name\":\"more\"}", EDQUOT, "the most");
	f->session.uid = 23456;
	ok(f, CREATE("\"name\":\"another-user\""));
	f->session.uid = 12345;
	ok(f, "{\"version\":1,\"op\":\"remove\",\"name\":\"a0\"}");
	ok(f, CREATE("\"name\":\"after-removal\""));
	f->session.is_admin = true;
	ok(f, CREATE("\"name\":\"of-an-administrator\""));
	f->node->is_private = true;
}

static void test_hold(void **state)
{
	struct fixture *f = *state;
	ok(f, CREATE("\"name\":\"held\",\"hold\":true"));
	ok(f, CREATE("\"name\":\"kept\""));
	struct tenant *t = node_find_tenant(f->node, "held");
	struct session other = f->session;
	int pid = client_spawn(f, t, 0, NULL);
	session_end(&f->session);
	assert_ptr_equal(node_find_tenant(f->node, "held"), t); /* a process lives */
	f->session = other;
	f->session.held_count = 0;
	ok(f, "{\"version\":1,\"op\":\"attach\",\"id\":\"held\"}");
	client_kill(pid);
	fixture_turn(f, 30);
	assert_ptr_equal(node_find_tenant(f->node, "held"), t); /* held again */
	session_end(&f->session);
	assert_null(node_find_tenant(f->node, "held"));
	assert_non_null(node_find_tenant(f->node, "kept"));
}

static void test_held_tenant_is_removed(void **state)
{
	struct fixture *f = *state;
	ok(f, CREATE("\"name\":\"a\",\"hold\":true"));
	ok(f, "{\"version\":1,\"op\":\"remove\",\"name\":\"a\"}");
	session_end(&f->session); /* its tenant has ended: nothing happens */
	assert_int_equal(f->node->tenant_count, 0);
}

static void hold_one_gib(struct client *c)
{
	c->report->slot[c->reply.slot].device[0].used_bytes = GIB;
}

/* A process may bypass its quota: the memory that it can take stays promised to its tenant. */
static void test_a_removed_tenant_ends_with_its_processes(void **state)
{
	struct fixture *f = *state;
	struct client late;
	const char *six_gib = CREATE(
		"\"name\":\"b\",\"devices\":[{\"index\":0,\"memory_bytes\":6442450944}]");
	ok(f, CREATE("\"name\":\"a\",\"devices\":[{\"index\":0,\"memory_bytes\":6442450944}]"));
	struct tenant *t = node_find_tenant(f->node, "a");
	uint64_t epoch = f->node->epoch;
	int pid = client_spawn(f, t, 0, hold_one_gib), again;
	for (unsigned i = 0; i < 2; i++) {
		json_t *reply = fixture_ok(f, "{\"version\":1,\"op\":\"remove\",\"name\":\"a\"}");
		assert_true(json_is_true(json_object_get(reply, "ending")));
		json_decref(reply);
	}
	assert_int_equal(t->region.control->device[0].quota_bytes, GIB);
	fixture_refused(f, six_gib, ENOSPC, "promised to others");
	fixture_refused(f, CREATE("\"name\":\"a\""), EEXIST, "was removed");
	fixture_refused(f, "{\"version\":1,\"op\":\"set\",\"name\":\"a\",\"priority\":1}",
			ESHUTDOWN, "was removed");
	fixture_refused(f, "{\"version\":1,\"op\":\"attach\",\"name\":\"a\"}", ESHUTDOWN,
			"was removed");
	client_register(f, client_connect(t), 0, &late);
	assert_null(late.control);
	client_close(&late);

	/* The next daemon knows it. */
	fixture_stop(f);
	fixture_start(f);
	t = node_find_tenant(f->node, "a");
	assert_int_equal(t->region.control->device[0].quota_bytes, GIB);
	fixture_refused(f, six_gib, ENOSPC, "promised to others");
	client_register(f, client_connect(t), 0, &late);
	assert_null(late.control);
	client_close(&late);
	client_register(f, client_connect(t), epoch, &late);
	assert_null(late.control); /* the test's process did not belong to it */
	client_close(&late);
	client_kill(pid);
	fixture_until(f, !node_find_tenant(f->node, "a"));
	ok(f, six_gib);
	again = client_spawn(f, node_find_tenant(f->node, "b"), 0, NULL);
	ok(f, "{\"version\":1,\"op\":\"remove\",\"name\":\"b\"}");
	assert_int_equal(f->node->tenant_count, 1);
	client_kill(again);
	fixture_until(f, f->node->tenant_count == 0);
}

static void work(struct client *c)
{
	struct region_slot_device *d = &c->report->slot[c->reply.slot].device[0];
	d->used_bytes = 64 * MIB;
	d->denied = 2;
	d->waited_ns = 1500000000;
	d->busy = 1;
}

static void test_list(void **state)
{
	struct fixture *f = *state;
	ok(f, CREATE("\"name\":\"a\",\"devices\":[{\"index\":0,\"memory_bytes\":1073741824,"
		     "\"cores_pct\":30,\"cores_limit_pct\":60}]"));
	struct tenant *t = node_find_tenant(f->node, "a");
	json_t *r = fixture_ok(f, "{\"version\":1,\"op\":\"list\"}");
	const char *name, *text, *uuid;
	json_int_t bytes, used, quota, denied;
	double busy, cores, limit, got1, got60, waited, delta;
	int index, version;
	assert_int_equal(json_unpack(r, "{s:i,s:[{s:i,s:s,s:s,s:I,s:I,s:f}*]}", "version", &version,
				     "devices", "index", &index, "uuid", &uuid, "name", &name,
				     "memory_bytes", &bytes, "memory_used_bytes", &used, "busy_pct",
				     &busy),
			 0);
	assert_int_equal(version, 1);
	assert_int_equal(bytes, FAKE_CARD_BYTES);
	assert_int_equal(json_unpack(r, "{s:[{s:s}]}", "tenants", "state", &text), 0);
	assert_string_equal(text, "starting");
	json_decref(r);

	int pid = client_spawn(f, t, 0, work);
	fixture_turn(f, 200);
	r = fixture_ok(f, "{\"version\":1,\"op\":\"list\"}");
	assert_int_equal(json_unpack(r, "{s:[{s:s,s:s,s:[{s:i,s:I,s:I,s:f,s:f,s:f,s:f,s:f,s:I}]}]}",
				     "tenants", "name", &name, "state", &text, "devices", "index",
				     &index, "memory_quota_bytes", &quota, "memory_used_bytes",
				     &used, "cores_pct", &cores, "cores_limit_pct", &limit,
				     "got_1s_pct", &got1, "got_60s_pct", &got60, "waited_s",
				     &waited, "denied", &denied),
			 0);
	assert_string_equal(text, "running");
	assert_int_equal(quota, GIB);
	assert_int_equal(used, 64 * MIB);
	assert_int_equal(denied, 2);
	assert_true(cores == 30 && limit == 60 && waited == 1.5);
	assert_true(got1 > 0 && got60 > 0);
	assert_int_equal(json_unpack(r, "{s:[{s:[{s:f}]}]}", "tenants", "devices", "delta_60s_pct",
				     &delta),
			 0);
	assert_true(delta >= 0 && delta <= 100);
	int listed_pid = 0;
	assert_int_equal(
		json_unpack(r, "{s:[{s:[{s:i}]}]}", "tenants", "processes", "pid", &listed_pid), 0);
	assert_int_equal(listed_pid, pid);
	json_decref(r);
	client_kill(pid);
}

static void test_many_tenants(void **state)
{
	struct fixture *f = *state;
	for (unsigned i = 0; i < ARBITER_MAX_TENANTS; i++)
		ok(f, CREATE("\"devices\":[{\"index\":0}]"));
	fixture_refused(f, CREATE("\"devices\":[{\"index\":0}]"), ENOSPC, "256 tenants already");
	assert_int_equal(f->node->tenant_count, ARBITER_MAX_TENANTS);
	json_decref(fixture_ok(f, "{\"version\":1,\"op\":\"list\"}"));
}

#define test(function) cmocka_unit_test_setup_teardown(function, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(test_hello),
		test(test_bad_requests),
		test(test_topology),
		test(test_create),
		test(test_names_and_cards_are_chosen),
		test(test_promises),
		test(test_elastic),
		test(test_set),
		test(test_set_needs_an_index),
		test(test_pause),
		test(test_a_poll_of_a_reversed_move),
		test(test_others_tenants),
		test(test_tenants_of_one_user),
		test(test_hold),
		test(test_held_tenant_is_removed),
		test(test_a_removed_tenant_ends_with_its_processes),
		test(test_list),
		test(test_many_tenants),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
