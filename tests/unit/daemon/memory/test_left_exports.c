/* Memory that descriptors of an ended process keep: charged to the tenant until they are closed. */
#include "../fixture.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "abi/shm/fd_tag_format.h"
#include "base/clock.h"
#include "daemon/gpu/census.h"

#define KEY UINT64_C(987654321)
#define OTHER_KEY (KEY + REGION_MAX_EXPORTS) /* collides with KEY */
#define PAGES 32

static void own(struct client *c, uint64_t key, unsigned place)
{
	struct region_export *e = &c->report->export[(key + place) % REGION_MAX_EXPORTS];
	uint32_t slot = c->reply.slot;
	e->key = key;
	e->owner = (uint64_t)c->report->slot[slot].generation << 32 | (slot + 1);
}

static void export_two(struct client *c)
{
	own(c, KEY, 0);
	own(c, OTHER_KEY, 1);
}

static void import_one(struct client *c)
{
	own(c, KEY, 0);
}

static int tagged(uint64_t key)
{
	struct flock lock = {
		.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = (off_t)key, .l_len = PAGES + 1
	};
	int fd = memfd_create("exported", MFD_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_OFD_SETLK, &lock), 0);
	return fd;
}

static struct tenant *make_tenant(struct fixture *f, const char *name)
{
	char line[160];
	snprintf(line, sizeof(line),
		 "{\"version\":1,\"op\":\"create\",\"name\":\"%s\",\"devices\":[{\"index\":0}]}",
		 name);
	json_decref(fixture_ok(f, line));
	return node_find_tenant(f->node, name);
}

static uint64_t used(struct tenant *t)
{
	return tenant_usage(t, 0).used_bytes;
}

static void test_charged_until_the_descriptor_is_closed(void **state)
{
	struct fixture *f = *state;
	struct tenant *t = make_tenant(f, "a");
	int pid = client_spawn(f, t, 0, export_two), fd = tagged(KEY);
	assert_int_equal(used(t), 0);
	client_kill(pid);
	/* The memory of OTHER_KEY has no descriptor any more. */
	fixture_until(f, t->process_count == 0);
	assert_int_equal(used(t), PAGES * FD_TAG_PAGE);
	close(fd);
	census_request(f->node->census);
	fixture_until(f, used(t) == 0);
	assert_null(t->left);
}

/* A process that imports it is charged by its own ledger. If that process ends too, the memory is still left. */
static void test_not_charged_while_a_live_process_is(void **state)
{
	struct fixture *f = *state;
	struct tenant *t = make_tenant(f, "a"), *other = make_tenant(f, "b");
	int fd = tagged(KEY);
	client_kill(client_spawn(f, t, 0, export_two));
	fixture_until(f, used(t) == PAGES * FD_TAG_PAGE);
	int importer = client_spawn(f, other, 0, import_one);
	census_request(f->node->census);
	fixture_until(f, used(t) == 0);
	client_kill(importer);
	fixture_until(f, used(t) + used(other) == PAGES * FD_TAG_PAGE);
	client_kill(client_spawn(f, t, 0, import_one));
	fixture_until(f, t->process_count == 0);
	assert_int_equal(used(t) + used(other), PAGES * FD_TAG_PAGE);
	close(fd);
	census_request(f->node->census);
	fixture_until(f, used(t) + used(other) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_charged_until_the_descriptor_is_closed,
						fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_not_charged_while_a_live_process_is,
						fixture_setup, fixture_teardown),
	};
	return cmocka_run_group_tests_name("left exports", tests, NULL, NULL);
}
