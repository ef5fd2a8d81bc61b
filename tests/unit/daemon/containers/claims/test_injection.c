/* The contents of a container's injection, for each way to load the driver; and the library's own place. */
#include "claims_fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/containers/claims/injection.h"
#include "daemon/containers/claims/library_copy.h"
#include "daemon/containers/claims/state_dir.h"

static const char *env_of(const struct injection *in, const char *name)
{
	const char *value = NULL;
	for (size_t i = 0; i < in->env_count; i++)
		if (!strcmp(in->env[i].name, name)) {
			assert_null(value);
			value = in->env[i].value;
		}
	return value;
}

static const char *mount_of(const struct injection *in, const char *container)
{
	for (size_t i = 0; i < in->mount_count; i++)
		if (!strcmp(in->mount[i].container_path, container)) {
			assert_true(in->mount[i].is_read_only);
			return in->mount[i].host_path;
		}
	return NULL;
}

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void library_of(struct fixture *f, const char *text)
{
	snprintf(f->node->config.container_library, CONFIG_PATH_MAX, "%s/liballot.so", f->dir);
	write_file(f->node->config.container_library, text);
}

static struct injection injected(struct fixture *f, const struct claim *claim)
{
	struct injection in;
	struct error err = { 0 };
	if (injection_make(f->node->claims, claim, &in, &err) < 0)
		fail_msg("%s", err.text);
	return in;
}

/* In HAMi's words there are two: above the usual, and all others. */
static void test_priorities(void **state)
{
	static const struct {
		int priority;
		const char *text;
	} rows[] = { { 10, "0" }, { 1, "0" }, { 0, "1" }, { -100, "1" } };
	struct fixture *f = *state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct claim_request request = claim_of(f, "ranked", 0, 100, 5, -1);
		request.priority = rows[i].priority;
		struct injection in = injected(f, claim_made(f, &request));
		assert_string_equal(env_of(&in, "CUDA_TASK_PRIORITY"), rows[i].text);
		injection_free(&in);
		assert_int_equal(claims_release(f->node->claims, "ranked", NULL, NULL), 0);
	}
}

static void test_with_the_toolkit(void **state)
{
	struct fixture *f = *state;
	char text[NODE_PATH_MAX], preload[256];
	struct claim_request request = claim_of(f, "a", 1, 1000, 30, -1);
	request.device_count = 2;
	request.device[1].card = &f->node->card[0]; /* the unpromised memory, without a limit */
	struct claim *claim = claim_made(f, &request);
	struct injection in = injected(f, claim);
	assert_string_equal(env_of(&in, "NVIDIA_VISIBLE_DEVICES"),
			    "GPU-00000000-0000-0000-0000-000000000002,"
			    "GPU-00000000-0000-0000-0000-000000000001");
	assert_string_equal(env_of(&in, "ALLOT_SOCKET"), "/run/allot/tenant/allot.sock");
	assert_string_equal(env_of(&in, "CUDA_DEVICE_MEMORY_LIMIT_0"), "1000m");
	assert_null(env_of(&in, "CUDA_DEVICE_MEMORY_LIMIT_1"));
	assert_string_equal(env_of(&in, "CUDA_DEVICE_SM_LIMIT"), "30");
	assert_null(env_of(&in, "CUDA_OVERSUBSCRIBE"));
	assert_null(env_of(&in, "LD_LIBRARY_PATH"));
	assert_string_equal(env_of(&in, "CUDA_TASK_PRIORITY"), "1");
	tenant_path(claim->tenant, NULL, text);
	assert_string_equal(mount_of(&in, INJECTION_SOCKET_DIR), text);
	const char *host = mount_of(&in, INJECTION_PRELOAD);
	assert_non_null(host);
	FILE *file = fopen(host, "r");
	assert_non_null(fgets(preload, sizeof(preload), file));
	fclose(file);
	preload[strcspn(preload, "\n")] = '\0';
	char *slash = strrchr(preload, '/');
	assert_string_equal(slash, "/liballot.so");
	*slash = '\0';
	assert_non_null(mount_of(&in, preload));
	assert_int_equal(in.mount_count, 3);
	injection_free(&in);
	assert_int_equal(in.mount_count + in.env_count + in.device_count, 0);
}

static void test_with_a_mirror(void **state)
{
	struct fixture *f = *state;
	char path[256];
	struct claim_request request = claim_of(f, "a", 0, 1024, 100, -1);
	struct claim *claim = claim_made(f, &request);
	struct error err = { 0 };
	struct injection in;
	snprintf(f->node->config.container_driver, CONFIG_PATH_MAX, "%s/mirror", f->dir);
	assert_int_equal(injection_make(f->node->claims, claim, &in, &err), -ENOENT);
	assert_non_null(strstr(err.text, "allot mirror"));
	snprintf(path, sizeof(path),
		 "mkdir -p %s/mirror/lib64 && touch %s/mirror/lib64/liballot.so", f->dir, f->dir);
	assert_int_equal(system(path), 0);
	in = injected(f, claim);
	assert_string_equal(mount_of(&in, INJECTION_MIRROR_DIR), f->node->config.container_driver);
	assert_string_equal(env_of(&in, "NVIDIA_VISIBLE_DEVICES"), "void");
	assert_null(mount_of(&in, INJECTION_PRELOAD)); /* never both */
	assert_null(env_of(&in, "CUDA_DEVICE_SM_LIMIT"));
	injection_free(&in);
	strcpy(f->node->config.container_driver, "mirror");
	assert_int_equal(injection_make(f->node->claims, claim, &in, &err), -EINVAL);
	assert_non_null(strstr(err.text, "must be toolkit, or the full path"));
}

static void test_uncontrolled(void **state)
{
	struct fixture *f = *state;
	struct claim_request request = claim_of(f, "a", 0, 1024, 30, -1);
	request.wants_no_control = true;
	f->node->config.allow_disable_control = true;
	struct injection in = injected(f, claim_made(f, &request));
	assert_int_equal(in.mount_count, 0);
	assert_int_equal(in.env_count, 1);
	assert_non_null(env_of(&in, "NVIDIA_VISIBLE_DEVICES"));
	injection_free(&in);
}

/* Found out before the claim is written down. */
static void test_no_library(void **state)
{
	struct fixture *f = *state;
	struct claim_request request = claim_of(f, "a", 0, 1024, 30, -1);
	strcpy(f->node->config.container_library, "/no/such/liballot.so");
	claim_refused(f, &request, ENOENT, "/no/such/liballot.so");
	library_of(f, "now there is one");
	struct injection in = injected(f, claim_made(f, &request));
	injection_free(&in);
}

static void test_parked(void **state)
{
	struct fixture *f = *state;
	struct claim_request request = claim_of(f, "a", 1, 1024, 30, -1);
	struct error err = { 0 };
	struct injection in;
	claim_made(f, &request);
	fixture_stop(f);
	fake_gpu.count = 1;
	fixture_start(f);
	struct claim *claim = claims_find(f->node->claims, "a");
	assert_int_equal(injection_make(f->node->claims, claim, &in, &err), -ENODEV);
	assert_non_null(strstr(err.text, "could not be restored when allotd started"));
}

/* The machine has no such nodes: null devices stand in for them. */
static void test_device_nodes(void **state)
{
	static const char *const leaves[] = { "nvidiactl", "nvidia-uvm", "nvidia5", "nvidia6" };
	struct fixture *f = *state;
	char dev[128], path[640];
	struct claim_request request = claim_of(f, "a", 0, 1024, 30, -1);
	const struct tenant_terms *terms = claim_terms(claim_made(f, &request));
	struct injection in = { 0 };
	f->node->card[0].info.minor_known = true;
	f->node->card[0].info.minor = 5;
	snprintf(dev, sizeof(dev), "%s/dev", f->dir);
	assert_int_equal(mkdir(dev, 0700), 0);
	for (size_t i = 0; i < sizeof(leaves) / sizeof(leaves[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", dev, leaves[i]);
		assert_int_equal(symlink("/dev/null", path), 0);
	}
	snprintf(path, sizeof(path), "%s/nvidia-uvm-tools", dev);
	write_file(path, "no node");
	assert_int_equal(injection_add_nodes(&in, terms, dev, NULL), 0);
	assert_int_equal(in.device_count, 3);
	assert_string_equal(in.device[0].container_path, "/dev/nvidiactl");
	assert_string_equal(in.device[1].container_path, "/dev/nvidia-uvm");
	assert_string_equal(in.device[2].container_path, "/dev/nvidia5");
	snprintf(path, sizeof(path), "%s/nvidia5", dev);
	assert_string_equal(in.device[2].host_path, path);
	injection_free(&in);
	/* An instance of MIG: its card's node, and its own two. */
	f->node->card[0].info.is_instance = true;
	f->node->card[0].info.caps = (struct mig_caps){ true, 66, 67 };
	snprintf(path, sizeof(path),
		 "mkdir %s/nvidia-caps && ln -s /dev/null %s/nvidia-caps/nvidia-cap66 && "
		 "ln -s /dev/null %s/nvidia-caps/nvidia-cap67",
		 dev, dev, dev);
	assert_int_equal(system(path), 0);
	assert_int_equal(injection_add_nodes(&in, terms, dev, NULL), 0);
	assert_int_equal(in.device_count, 5);
	assert_string_equal(in.device[2].container_path, "/dev/nvidia5");
	assert_string_equal(in.device[3].container_path, "/dev/nvidia-caps/nvidia-cap66");
	assert_string_equal(in.device[4].container_path, "/dev/nvidia-caps/nvidia-cap67");
	injection_free(&in);
}

/* ---- the library's place ---- */

static struct library installed(const char *from, const char *dir)
{
	struct library library;
	struct error err = { 0 };
	if (library_install(from, dir, &library, &err) < 0)
		fail_msg("%s", err.text);
	return library;
}

static void test_library(void **state)
{
	struct fixture *f = *state;
	char from[128], path[512];
	struct stat before, after;
	struct error err = { 0 };
	struct library other;
	snprintf(from, sizeof(from), "%s/liballot.so", f->dir);
	write_file(from, "first");
	struct library first = installed(from, f->dir);
	assert_memory_equal(first.name, ALLOT_VERSION "-", strlen(ALLOT_VERSION) + 1);
	snprintf(path, sizeof(path), "%s/liballot.so", first.dir);
	assert_int_equal(stat(path, &before), 0);
	assert_int_equal(before.st_mode & 0777, 0755);
	/* Again: the same, and not touched. */
	struct library again = installed(from, f->dir);
	assert_string_equal(again.name, first.name);
	assert_int_equal(stat(path, &after), 0);
	assert_int_equal(after.st_ino, before.st_ino);
	assert_int_equal(after.st_mtim.tv_nsec, before.st_mtim.tv_nsec);
	/* Another build stands beside it. */
	write_file(from, "second");
	struct library second = installed(from, f->dir);
	assert_string_not_equal(second.name, first.name);
	assert_int_equal(access(path, F_OK), 0);
	/* Changed by another program. */
	write_file(path, "third");
	write_file(from, "first");
	assert_int_equal(library_install(from, f->dir, &other, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "is not the file that allotd installed"));
	assert_int_equal(library_install("/dev/null", f->dir, &other, &err), -EINVAL);
	snprintf(path, sizeof(path), "%s/none", f->dir);
	assert_int_equal(library_install(path, f->dir, &other, &err), -ENOENT);
}

/* ---- the state directory ---- */

static void expect_state_dir(struct node *node, bool is_private, const char *run_dir,
			     const char *setting, const char *expected)
{
	char dir[STATE_DIR_MAX];
	char before[NODE_RUN_DIR_MAX];
	strcpy(before, node->run_dir);
	node->is_private = is_private;
	strcpy(node->run_dir, run_dir);
	strcpy(node->config.state_dir, setting);
	state_dir_find(node, dir);
	assert_string_equal(dir, expected);
	strcpy(node->run_dir, before);
	node->is_private = true;
}

static void test_state_dir(void **state)
{
	struct fixture *f = *state;
	char path[STATE_DIR_MAX], long_path[STATE_DIR_MAX + 32];
	struct error err = { 0 };
	struct stat st;
	expect_state_dir(f->node, false, "/run/allot/gpu", "auto", "/var/lib/allot/gpu");
	expect_state_dir(f->node, false, "/run/allot/sim-a", "auto", "/var/lib/allot/sim-a");
	expect_state_dir(f->node, false, "/srv/run", "auto", "/srv/run");
	expect_state_dir(f->node, true, "/run/allot/gpu", "auto", "/run/allot/gpu");
	expect_state_dir(f->node, true, "/run/allot/gpu", "/srv/state", "/srv/state");
	assert_int_equal(state_dir_make(f->node, "state", &err), -EINVAL);
	assert_non_null(strstr(err.text, "full path"));
	snprintf(path, sizeof(path), "%s/a/b/c", f->dir);
	assert_int_equal(state_dir_make(f->node, path, &err), 0);
	assert_int_equal(state_dir_make(f->node, path, &err), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0755);
	assert_int_equal(chmod(path, 0777), 0);
	assert_int_equal(state_dir_make(f->node, path, &err), -EPERM);
	assert_non_null(strstr(err.text, "writable only by that user"));
	snprintf(long_path, sizeof(long_path), "%s/file", path);
	write_file(long_path, "");
	assert_int_equal(state_dir_make(f->node, long_path, &err), -ENOTDIR);
}

static int setup(void **state)
{
	log_set_level(LOG_LEVEL_ERROR - 1);
	return fixture_setup(state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_with_the_toolkit), TEST(test_with_a_mirror), TEST(test_uncontrolled),
		TEST(test_no_library),       TEST(test_parked),        TEST(test_device_nodes),
		TEST(test_library),          TEST(test_state_dir),     TEST(test_priorities),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
