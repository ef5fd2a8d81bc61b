#include "cli/probe.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/install.h"
#include "base/paths.h"
#include "cli/child_output.h"

#define HINT \
	"; install NVIDIA's driver where there is a GPU, or add --sim h200 to run on a simulated " \
	"one"

/* The functions of NVML that are used here, as declared in nvml.h. */
typedef int nvml_init(void);
typedef int nvml_shutdown(void);
typedef int nvml_device_count(unsigned int *count);
typedef const char *nvml_error_string(int result);

static int count_gpus(void *nvml, struct error *err)
{
	nvml_init *init = (nvml_init *)dlsym(nvml, "nvmlInit_v2");
	nvml_shutdown *shutdown = (nvml_shutdown *)dlsym(nvml, "nvmlShutdown");
	nvml_device_count *device_count = (nvml_device_count *)dlsym(nvml, "nvmlDeviceGetCount_v2");
	nvml_error_string *error_string = (nvml_error_string *)dlsym(nvml, "nvmlErrorString");
	unsigned int count = 0;
	int result;

	if (!init || !shutdown || !device_count)
		return error_set(err, ENODEV, "no GPU: libnvidia-ml.so.1 is not NVIDIA's NVML" HINT);
	result = init();
	if (result != 0)
		return error_set(err, ENODEV, "no GPU: NVML says \"%s\"" HINT,
				 error_string ? error_string(result) : "error");
	result = device_count(&count);
	shutdown();
	if (result != 0 || count == 0)
		return error_set(err, ENODEV, "no GPU: the NVIDIA driver finds none" HINT);
	return 0;
}

static int load_and_count(struct error *err)
{
	void *nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
	int r;

	if (!nvml)
		return error_set(err, ENODEV, "no GPU: no NVIDIA driver is installed" HINT);
	r = count_gpus(nvml, err);
	dlclose(nvml);
	return r;
}

/* Counts in a child process: NVML leaves a thread behind, which would take signals from this program's signalfd. */
int probe_gpu(struct error *err)
{
	cleanup_fd int read_fd = -1, write_fd = -1;
	struct error found = { 0 };
	int fds[2];
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return error_set_errno(err, errno, "pipe");
	read_fd = fds[0];
	write_fd = fds[1];
	pid = fork();
	if (pid < 0)
		return error_set_errno(err, errno, "fork");
	if (pid == 0) {
		load_and_count(&found);
		_exit(write(write_fd, &found, sizeof(found)) != (ssize_t)sizeof(found));
	}
	close_fd(&write_fd);
	ssize_t n = read(read_fd, &found, sizeof(found));
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	if (n != (ssize_t)sizeof(found))
		return error_set(
			err, ENODEV,
			"no GPU: NVIDIA's library NVML crashed while it counted the GPUs" HINT);
	*err = found;
	return found.code ? -found.code : 0;
}

int probe_sim(const char *spec, struct error *err)
{
	static const char prefix[] = "allot-sim: ";
	char server[PATHS_MAX], text[512];
	char *argv[] = { server, (char *)"--check", (char *)spec, NULL };
	int status = 0;
	int r = install_find(INSTALL_SIM_SERVER, server, err);

	if (r >= 0)
		r = child_output(argv, true, -1, text, sizeof(text), &status, err);
	if (r < 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 0))
		return r;
	text[strcspn(text, "\n")] = '\0';
	return error_set(err, EINVAL, "--sim: %s",
			 text + (strncmp(text, prefix, strlen(prefix)) ? 0 : strlen(prefix)));
}
