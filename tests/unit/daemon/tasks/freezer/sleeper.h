/* A process that does nothing until it is ended. */
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static inline pid_t sleeper_start(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		pause();
		_exit(0);
	}
	return pid;
}

static inline void sleeper_end(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}
