/* A process that does nothing until it is ended. */
#ifndef ALLOT_TESTS_UNIT_DAEMON_TASKS_FREEZER_SLEEPER_H
#define ALLOT_TESTS_UNIT_DAEMON_TASKS_FREEZER_SLEEPER_H

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

#endif
