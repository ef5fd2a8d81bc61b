/* The command line of `allot-sim`. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/client/server_link.h"
#include "sim/server/server.h"

/* `allot-sim --ctl`: the functions down to ctl_main() return its exit status. */

static int usage(void)
{
	fprintf(stderr, "allot-sim: --ctl needs one of: stats, xid GPU NUMBER, ecc GPU, "
			"lose GPU, heal GPU\n");
	return 2;
}

static int card_word(const char *word, uint32_t *ret_value)
{
	char *end;
	unsigned long value = strtoul(word, &end, 10);

	if (end == word || *end || value > 100000)
		return usage();
	*ret_value = (uint32_t)value;
	return 0;
}

static int ctl_main(const char *socket_path, int words_n, char **words)
{
	static struct link link;
	struct sim_request_msg m = { 0 };
	uint32_t number = 0;
	void *payload = NULL;
	size_t bytes = 0;
	int wanted;

	if (words_n < 1)
		return usage();
	if (!strcmp(words[0], "stats"))
		m.type = SIM_CTL_STATS, wanted = 1;
	else if (!strcmp(words[0], "xid"))
		m.type = SIM_CTL_XID, wanted = 3;
	else if (!strcmp(words[0], "ecc"))
		m.type = SIM_CTL_ECC, wanted = 2;
	else if (!strcmp(words[0], "lose"))
		m.type = SIM_CTL_LOSE, wanted = 2;
	else if (!strcmp(words[0], "heal"))
		m.type = SIM_CTL_HEAL, wanted = 2;
	else
		return usage();
	if (words_n != wanted)
		return usage();
	if ((wanted > 1 && card_word(words[1], &m.card)) ||
	    (wanted > 2 && card_word(words[2], &number)))
		return 2;
	m.arg[0] = number;
	int r = link_open(&link, socket_path, SIM_KIND_CTL);
	if (r < 0) {
		fprintf(stderr,
			r == -ECONNRESET
				? "allot-sim: --socket %s: the server refused the connection (%s): is it of another version of allot?\n"
				: "allot-sim: --socket %s: no server answers there (%s): start one with "
				  "allot-sim --spec SPEC --socket PATH\n",
			socket_path, strerror(-r));
		return 1;
	}
	r = link_call(&link, m, NULL, &payload, &bytes);
	if (payload)
		fwrite(payload, 1, bytes, stdout);
	free(payload);
	link_close(&link);
	if (r == SIM_BAD_DEVICE)
		fprintf(stderr,
			"allot-sim: GPU %u does not exist: allot-sim --ctl stats lists the GPUs\n",
			m.card);
	else if (r)
		fprintf(stderr,
			"allot-sim: '%s' failed (CUDA error %d; 46 means that the server has "
			"ended)\n",
			words[0], r);
	return r ? 1 : 0;
}

static const char help[] =
	"usage: allot-sim --spec h200|h200xN|LAYOUT|FILE --socket PATH [--linger SECONDS]\n"
	"                 [--foreground | --ready-fd N]\n"
	"       allot-sim --check FILE\n"
	"       allot-sim --ctl --socket PATH stats | xid GPU NUMBER | ecc GPU |\n"
	"                       lose GPU | heal GPU\n"
	"\n"
	"Simulates the GPUs of a machine for programs that load the simulated\n"
	"libcuda.so.1 and libnvidia-ml.so.1, which are in the directory of allot-sim,\n"
	"with ALLOT_SIM_SOCKET=PATH in the environment.\n"
	"\n"
	"  --spec       the GPUs: one H200, N of them, the layout of a machine\n"
	"               (dgx-1v, dgx-a100, pcie, mixed), two H200 of which\n"
	"               one has MIG instances (h200-mig), or a description file.\n"
	"  --linger     exit when the last client has been gone for this long (2; 0: never).\n"
	"  --foreground do not fork. Without this option or --ready-fd, allot-sim goes to\n"
	"               the background once it listens.\n"
	"  --ready-fd   as --foreground; also writes a line to this descriptor once it\n"
	"               listens, and closes it.\n"
	"  --check      check a description file: print the first error, or nothing and exit\n"
	"               with 0.\n"
	"  --ctl        ask the allot-sim that listens at --socket for statistics (JSON), or to\n"
	"               cause a fault: xid, ecc or lose, which heal ends.\n";

struct options {
	const char *spec, *socket, *check;
	double linger_s;
	bool foreground, ctl;
	int ready_fd;
};

/* Returns -1 to go on, else the exit status. */
static int parse(struct options *o, int argc, char **argv)
{
	enum { SPEC = 256, SOCKET, LINGER, FOREGROUND, READY_FD, CTL, CHECK, HELP };
	static const struct option options[] = {
		{ "spec", required_argument, NULL, SPEC },
		{ "socket", required_argument, NULL, SOCKET },
		{ "linger", required_argument, NULL, LINGER },
		{ "foreground", no_argument, NULL, FOREGROUND },
		{ "ready-fd", required_argument, NULL, READY_FD },
		{ "ctl", no_argument, NULL, CTL },
		{ "check", required_argument, NULL, CHECK },
		{ "help", no_argument, NULL, HELP },
		{ NULL, 0, NULL, 0 },
	};
	char *end;
	int c;

	while ((c = getopt_long(argc, argv, "+h", options, NULL)) != -1) {
		switch (c) {
		case SPEC: o->spec = optarg; break;
		case SOCKET: o->socket = optarg; break;
		case CHECK: o->check = optarg; break;
		case FOREGROUND: o->foreground = true; break;
		case CTL: o->ctl = true; break;
		case LINGER:
			o->linger_s = strtod(optarg, &end);
			if (end == optarg || *end || !(o->linger_s >= 0) || o->linger_s > 1e6) {
				fprintf(stderr,
					"allot-sim: --linger: '%s': must be from 0 to 1000000 "
					"seconds\n",
					optarg);
				return 2;
			}
			break;
		case READY_FD:
			o->ready_fd = (int)strtol(optarg, &end, 10);
			if (end == optarg || *end || o->ready_fd < 0) {
				fprintf(stderr,
					"allot-sim: --ready-fd: '%s': must be the number of an open file descriptor\n",
					optarg);
				return 2;
			}
			o->foreground = true;
			break;
		case 'h':
		case HELP: fputs(help, stdout); return 0;
		default: fputs(help, stderr); return 2;
		}
	}
	return -1;
}

/* Forks. The child gets the pipe end to which ready() writes a line; the parent exits after that line. -errno on failure. */
static int to_background(void)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	pid_t pid = fork();
	if (pid < 0)
		return -errno;
	if (pid > 0) {
		char ok;
		int status = 1;

		close(fds[1]);
		if (read(fds[0], &ok, 1) == 1)
			_exit(0);
		if (waitpid(pid, &status, 0) == pid && WIFEXITED(status))
			_exit(WEXITSTATUS(status));
		_exit(1);
	}
	close(fds[0]);
	setsid();
	return fds[1];
}

static void ready(int fd, bool background)
{
	if (fd < 0)
		return;
	if (background) {
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);

		/* The background process must not keep the starter's terminal or pipe open. */
		if (null >= 0) {
			dup2(null, 0);
			dup2(null, 1);
			dup2(null, 2);
			if (null > 2)
				close(null);
		}
		if (chdir("/") < 0)
			(void)0;
	}
	if (write(fd, "\n", 1) < 0)
		(void)0;
	close(fd);
}

int main(int argc, char **argv)
{
	static struct server server;
	struct options o = { .linger_s = 2, .ready_fd = -1 };
	char error[512];
	char *path;
	int r = parse(&o, argc, argv);

	if (r >= 0)
		return r;
	if (o.ctl && o.socket)
		return ctl_main(o.socket, argc - optind, argv + optind);
	if (o.check) {
		r = spec_load(&server.spec, o.check, error, sizeof(error));
		if (r < 0)
			fprintf(stderr, "allot-sim: %s\n", error);
		return r < 0 ? 1 : 0;
	}
	if (!o.spec || !o.socket || o.ctl || optind != argc) {
		fputs(help, stderr);
		return 2;
	}
	if (spec_load(&server.spec, o.spec, error, sizeof(error)) < 0) {
		fprintf(stderr, "allot-sim: %s\n", error);
		return 1;
	}
	/* The background process changes its directory, so make the path absolute. */
	if (o.socket[0] == '/' || o.foreground)
		path = strdup(o.socket);
	else if (getcwd(error, sizeof(error)) == NULL ||
		 asprintf(&path, "%s/%s", error, o.socket) < 0)
		path = NULL;
	if (!path) {
		fprintf(stderr, "allot-sim: out of memory\n");
		return 1;
	}
	signal(SIGPIPE, SIG_IGN);
	server.linger_ns = (uint64_t)(o.linger_s * 1e9);
	if (!o.foreground)
		o.ready_fd = to_background();
	if (!o.foreground && o.ready_fd < 0) {
		fprintf(stderr, "allot-sim: can't start a background process: %s\n",
			strerror(-o.ready_fd));
		free(path);
		return 1;
	}
	r = server_open(&server, path, error, sizeof(error));
	if (r < 0) {
		fprintf(stderr, "allot-sim: %s\n", error);
		free(path);
		return 1;
	}
	ready(o.ready_fd, !o.foreground);
	r = server_run(&server);
	unlink(path);
	snprintf(error, sizeof(error), "%s" SIM_NODE_SUFFIX, path);
	unlink(error);
	server_close(&server);
	free(path);
	return r < 0 ? 1 : 0;
}
