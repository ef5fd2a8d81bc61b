/*
 * One replica of a leader election. It prints "leads TIME" and "follows TIME" (seconds of the monotonic clock) when it begins
 * and ceases to lead. On SIGTERM it releases the lease, prints "released TIME", and ends.
 *
 *     kube-sched-leader KUBECONFIG NAME IDENTITY DURATION_S DEADLINE_MS RETRY_MS
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>

#include "base/clock.h"
#include "base/log.h"
#include "scheduler/cluster/leader.h"

static bool is_over;

static void say(const char *what)
{
	printf("%s %.6f\n", what, (double)clock_now_ns() / 1e9);
	fflush(stdout);
}

static void changed(void *data, bool is_leader)
{
	say(is_leader ? "leads" : "follows");
}

static void released(void *data)
{
	say("released");
	is_over = true;
}

static int serve(struct kube_client *client, struct leader *leader)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	struct pollfd fds[] = { { .fd = signalfd(-1, &set, SFD_CLOEXEC), .events = POLLIN },
				{ .fd = kube_client_fd(client), .events = POLLIN } };
	while (!is_over) {
		struct signalfd_siginfo info;
		if (poll(fds, 2, -1) < 0)
			return 1;
		if (fds[1].revents)
			kube_client_process(client);
		if (fds[0].revents && read(fds[0].fd, &info, sizeof(info)) == sizeof(info))
			leader_release(leader);
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct kube_access access;
	struct kube_client *client = NULL;
	struct leader *leader = NULL;
	struct error err = { 0 };
	if (argc != 7) {
		fputs("usage: kube-sched-leader KUBECONFIG NAME IDENTITY DURATION_S DEADLINE_MS "
		      "RETRY_MS\n",
		      stderr);
		return 2;
	}
	log_init("kube-sched-leader");
	int r = access_read_config(argv[1], &access, &err);
	if (r >= 0)
		r = kube_client_new(&access, &client, &err);
	if (r < 0) {
		fprintf(stderr, "kube-sched-leader: %s\n", err.text);
		return 1;
	}
	const struct leader_terms terms = {
		.client = client,
		.in_namespace = "default",
		.name = argv[2],
		.election = { .identity = argv[3],
			      .duration_s = (unsigned)atoi(argv[4]),
			      .deadline_ns = strtoull(argv[5], NULL, 10) * NSEC_PER_MSEC,
			      .retry_ns = strtoull(argv[6], NULL, 10) * NSEC_PER_MSEC },
		.changed = changed,
		.released = released,
	};
	int status = leader_start(&terms, &leader) < 0 ? 1 : serve(client, leader);
	leader_free(leader);
	kube_client_free(client);
	access_free(&access);
	return status;
}
