#include "cgroup_scene.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

static void parents(const struct cgroup_scene *s, char top[CGROUP_DIR_MAX],
		    char middle[CGROUP_DIR_MAX])
{
	strcpy(middle, s->cgroup.dir);
	*strrchr(middle, '/') = '\0';
	strcpy(top, middle);
	*strrchr(top, '/') = '\0';
}

bool cgroup_scene_make(struct cgroup_scene *s, bool v2)
{
	char top[CGROUP_DIR_MAX], middle[CGROUP_DIR_MAX];
	struct error err = { 0 };
	memset(s, 0, sizeof(*s));
	if (cgroups_find(&s->cgroups) < 0)
		return false;
	const struct cgroups_hierarchy *h = v2 ? &s->cgroups.v2 : &s->cgroups.v1;
	if (!h->mount[0])
		return false;
	s->container.engine = "docker";
	strcpy(s->container.id, SCENE_ID);
	char *path = v2 ? s->container.v2_path : s->container.v1_path, below[128];
	snprintf(below, sizeof(below), "/allot-test-%d/docker/" SCENE_ID, getpid());
	if (strlen(h->root) + strlen(below) >= CONTAINER_PATH_MAX)
		return false;
	strcat(strcpy(path, h->root), below);
	strcat(strcpy(s->cgroup.dir, h->mount), below);
	parents(s, top, middle);
	if (mkdir(top, 0755) < 0 || mkdir(middle, 0755) < 0 || mkdir(s->cgroup.dir, 0755) < 0 ||
	    cgroup_find_freezer(&s->cgroups, &s->container, &s->cgroup, &err) < 0 ||
	    s->cgroup.is_v2 != v2) {
		cgroup_scene_end(s);
		return false;
	}
	s->counter = mmap(NULL, SCENE_PROCESSES * 64, PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return s->counter != MAP_FAILED;
}

static void move_in(const char *dir, pid_t pid)
{
	char file[CGROUP_DIR_MAX + 16], text[32];
	snprintf(file, sizeof(file), "%s/cgroup.procs", dir);
	int fd = open(file, O_WRONLY | O_CLOEXEC), n = snprintf(text, sizeof(text), "%d", pid);
	if (fd < 0 || write(fd, text, (size_t)n) != n)
		abort();
	close(fd);
}

void cgroup_scene_start(struct cgroup_scene *s)
{
	for (unsigned i = 0; i < SCENE_PROCESSES; i++) {
		s->pid[i] = fork();
		if (s->pid[i] == 0)
			for (;;) {
				s->counter[i * 8]++;
				usleep(500);
			}
		move_in(s->cgroup.dir, s->pid[i]);
	}
}

static _Noreturn void keep_forking(volatile unsigned long *counter)
{
	for (;;) {
		pid_t child = fork();
		if (child == 0)
			_exit(0);
		waitpid(child, NULL, 0);
		++*counter;
	}
}

void cgroup_scene_start_forking(struct cgroup_scene *s)
{
	for (unsigned i = 0; i < SCENE_PROCESSES; i++) {
		s->pid[i] = fork();
		if (s->pid[i] == 0)
			keep_forking(&s->counter[i * 8]);
		move_in(s->cgroup.dir, s->pid[i]);
	}
}

bool cgroup_scene_runs(struct cgroup_scene *s, unsigned ms)
{
	unsigned long before[SCENE_PROCESSES];
	uint64_t end_ns = clock_now_ns() + ms * NSEC_PER_MSEC;
	for (unsigned i = 0; i < SCENE_PROCESSES; i++)
		before[i] = s->counter[i * 8];
	do {
		for (unsigned i = 0; i < SCENE_PROCESSES; i++)
			if (s->counter[i * 8] != before[i])
				return true;
		usleep(1000);
	} while (clock_now_ns() < end_ns);
	return false;
}

int cgroup_wait_frozen(const struct cgroup *cgroup, unsigned timeout_ms)
{
	uint64_t end_ns = clock_now_ns() + timeout_ms * NSEC_PER_MSEC;
	int r;
	/* Reading the state of version 1 also makes the kernel check whether the freeze is complete. */
	while ((r = cgroup_is_frozen(cgroup)) == 0 && clock_now_ns() < end_ns)
		usleep(500);
	return r;
}

void cgroup_scene_end(struct cgroup_scene *s)
{
	char top[CGROUP_DIR_MAX], middle[CGROUP_DIR_MAX];
	cgroup_thaw(&s->cgroup);
	for (unsigned i = 0; i < SCENE_PROCESSES; i++)
		if (s->pid[i] > 0) {
			kill(s->pid[i], SIGKILL);
			waitpid(s->pid[i], NULL, 0);
		}
	if (s->counter && s->counter != MAP_FAILED)
		munmap((void *)(uintptr_t)s->counter, SCENE_PROCESSES * 64);
	parents(s, top, middle);
	/* A cgroup is busy for a moment after its last process is gone. */
	for (unsigned i = 0; i < 100 && rmdir(s->cgroup.dir) < 0 && errno == EBUSY; i++)
		usleep(10000);
	rmdir(middle);
	rmdir(top);
}
