/* Texts of /proc/PID/cgroup as engines and drivers make them; where each form is documented: container.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/util/container.h"

#define ID "3f4c1a0b9d8e7f6a5b4c3d2e1f0a9b8c7d6e5f4a3b2c1d0e9f8a7b6c5d4e3f2a"
#define ID2 "aa4c1a0b9d8e7f6a5b4c3d2e1f0a9b8c7d6e5f4a3b2c1d0e9f8a7b6c5d4e3f2a"
#define POD "1f2e3d4c-5b6a-4798-8a9b-0c1d2e3f4a5b"
#define POD_ "1f2e3d4c_5b6a_4798_8a9b_0c1d2e3f4a5b"

static const struct row {
	const char *text;
	const char *engine; /* NULL: no container */
	const char *id, *v2_path, *v1_path;
} rows[] = {
	/* Version 2, systemd driver: Docker, podman as root and as a user. */
	{ "0::/system.slice/docker-" ID ".scope\n", "docker", ID,
	  "/system.slice/docker-" ID ".scope", "" },
	{ "0::/machine.slice/libpod-" ID ".scope/container\n", "podman", ID,
	  "/machine.slice/libpod-" ID ".scope", "" },
	{ "0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID ".scope\n",
	  "podman", ID,
	  "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID ".scope", "" },
	{ "0::/default/nerdctl-" ID ".scope\n", "containerd", ID, "/default/nerdctl-" ID ".scope",
	  "" },
	/* Version 2, cgroupfs driver. */
	{ "0::/docker/" ID "\n", "docker", ID, "/docker/" ID, "" },
	{ "0::/libpod_parent/libpod-" ID "\n", "podman", ID, "/libpod_parent/libpod-" ID, "" },
	{ "0::/default/web-1\n", "containerd", "web-1", "/default/web-1", "" },
	{ "0::/jobs/" ID "\n", "container", ID, "/jobs/" ID, "" },
	/* Kubernetes: systemd and cgroupfs drivers of kubelet, containerd and CRI-O. */
	{ "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" POD_
	  ".slice/cri-containerd-" ID ".scope\n",
	  "containerd", ID,
	  "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" POD_
	  ".slice/cri-containerd-" ID ".scope",
	  "" },
	{ "0::/kubepods.slice/kubepods-pod" POD_ ".slice/crio-" ID ".scope/container\n", "cri-o",
	  ID, "/kubepods.slice/kubepods-pod" POD_ ".slice/crio-" ID ".scope", "" },
	{ "0::/kubepods/besteffort/pod" POD "/crio-" ID "\n", "cri-o", ID,
	  "/kubepods/besteffort/pod" POD "/crio-" ID, "" },
	{ "0::/kubepods/burstable/pod" POD "/" ID "\n", "container", ID,
	  "/kubepods/burstable/pod" POD "/" ID, "" },
	/* kubelet with systemd's names, containerd without its driver. */
	{ "0::/system.slice/containerd.service/kubepods-burstable-pod" POD_
	  ".slice:cri-containerd:" ID "\n",
	  "containerd", ID,
	  "/system.slice/containerd.service/kubepods-burstable-pod" POD_ ".slice:cri-containerd:" ID,
	  "" },
	/* kind: a node that is a container itself. The inner one is meant. */
	{ "0::/docker/" ID2 "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" POD_
	  ".slice/cri-containerd-" ID ".scope\n",
	  "containerd", ID,
	  "/docker/" ID2 "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" POD_
	  ".slice/cri-containerd-" ID ".scope",
	  "" },
	/* systemd in a container. */
	{ "0::/docker/" ID "/system.slice/nginx.service\n", "docker", ID, "/docker/" ID, "" },
	/* Version 1, both drivers; no version 2 at all. */
	{ "12:freezer:/docker/" ID "\n11:cpu,cpuacct:/docker/" ID "\n1:name=systemd:/docker/" ID "\n",
	  "docker", ID, "", "/docker/" ID },
	{ "4:devices,freezer:/system.slice/docker-" ID ".scope\n", "docker", ID, "",
	  "/system.slice/docker-" ID ".scope" },
	/* Hybrid: version 2 has no controllers; Docker's cgroupfs driver leaves it where it was. */
	{ "9:freezer:/docker/" ID "\n1:name=systemd:/docker/" ID
	  "\n0::/system.slice/containerd.service\n",
	  "docker", ID, "", "/docker/" ID },
	{ "9:freezer:/kubepods/burstable/pod" POD "/" ID
	  "\n1:name=systemd:/kubepods.slice/kubepods-pod" POD_ ".slice/cri-containerd-" ID
	  ".scope\n0::/kubepods.slice/kubepods-pod" POD_ ".slice/cri-containerd-" ID ".scope\n",
	  "containerd", ID, "/kubepods.slice/kubepods-pod" POD_ ".slice/cri-containerd-" ID ".scope",
	  "/kubepods/burstable/pod" POD "/" ID },
	/* The container is named where nothing can be frozen. */
	{ "5:memory:/docker/" ID "\n0::/\n", "docker", ID, "", "" },
	/* Seen from another cgroup namespace. */
	{ "0::/../../system.slice/docker-" ID ".scope\n", "docker", ID,
	  "/../../system.slice/docker-" ID ".scope", "" },
	/* None of them: slices, sessions, monitors, services, similar names. */
	{ "0::/\n", NULL, NULL, NULL, NULL },
	{ "", NULL, NULL, NULL, NULL },
	{ "no colons\n1:freezer\n", NULL, NULL, NULL, NULL },
	{ "0::/user.slice/user-1000.slice/session-3.scope\n", NULL, NULL, NULL, NULL },
	{ "0::/system.slice/docker.service\n", NULL, NULL, NULL, NULL },
	{ "0::/system.slice/containerd.service\n", NULL, NULL, NULL, NULL },
	{ "0::/machine.slice/libpod-conmon-" ID ".scope\n", NULL, NULL, NULL, NULL },
	{ "0::/kubepods.slice/kubepods-pod" POD_ ".slice/crio-conmon-" ID ".scope\n", NULL, NULL,
	  NULL, NULL },
	{ "0::/kubepods.slice/kubepods-pod" POD_ ".slice\n", NULL, NULL, NULL, NULL },
	{ "0::/default/a b\n", NULL, NULL, NULL, NULL },
	{ "0::/default/\xff\n", NULL, NULL, NULL, NULL },
	{ "0::/system.slice/default/web\n", NULL, NULL, NULL, NULL },
	{ "0::/docker/buildkit\n", NULL, NULL, NULL, NULL },
	{ "0::/system.slice/docker-volume.scope\n", NULL, NULL, NULL, NULL },
};

static void test_rows(void **state)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *r = &rows[i];
		struct container c = { 0 };
		bool found = container_from_cgroups(r->text, &c);
		if (found != (r->engine != NULL))
			fail_msg("%s: found %d", r->text, found);
		if (!found)
			continue;
		if (strcmp(c.engine, r->engine) != 0 || strcmp(c.id, r->id) != 0 ||
		    strcmp(c.v2_path, r->v2_path) != 0 || strcmp(c.v1_path, r->v1_path) != 0)
			fail_msg("%s: %s, %s, '%s', '%s'", r->text, c.engine, c.id, c.v2_path,
				 c.v1_path);
	}
}

static void test_too_long(void **state)
{
	char text[3 * CONTAINER_PATH_MAX] = "0::/", name[2 * CONTAINER_ID_MAX] = "0::/default/";
	struct container c;
	memset(text + 4, 'x', 2 * CONTAINER_PATH_MAX);
	strcat(text, "/docker/" ID "\n");
	assert_false(container_from_cgroups(text, &c));
	memset(name + 12, 'x', CONTAINER_ID_MAX);
	assert_false(container_from_cgroups(name, &c));
}

static void test_own_cgroup_is_never_frozen(void **state)
{
	static const struct {
		const char *path, *own;
		bool may;
	} cases[] = {
		{ "/docker/" ID, "/system.slice/allotd.service", true },
		{ "/docker/" ID, "/docker/" ID2, true },
		{ "/docker/" ID, "/docker/" ID, false },
		{ "/docker/" ID, "/docker/" ID "/init.scope", false },
		{ "/docker/ab", "/docker/abc", true },
		{ "/", "/docker/" ID, false },
		{ "", "/", false },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (container_may_freeze(cases[i].path, cases[i].own) != cases[i].may)
			fail_msg("%s of %s", cases[i].path, cases[i].own);
}

static void test_path_of_a_controller(void **state)
{
	static const char text[] = "9:cpu,freezer:/a\n3:freezer2:/b\n0::/c\n";
	char path[CONTAINER_PATH_MAX];
	assert_true(container_read_path(text, "freezer", path));
	assert_string_equal(path, "/a");
	assert_true(container_read_path(text, "", path));
	assert_string_equal(path, "/c");
	assert_false(container_read_path(text, "memory", path));
}

static void test_engines(void **state)
{
	assert_string_equal(container_engine("podman"), "podman");
	assert_string_equal(container_engine("container"), "container");
	assert_null(container_engine("lxc"));
	assert_null(container_engine(""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_too_long),
		cmocka_unit_test(test_own_cgroup_is_never_frozen),
		cmocka_unit_test(test_path_of_a_controller),
		cmocka_unit_test(test_engines),
	};
	return cmocka_run_group_tests_name("container", tests, NULL, NULL);
}
