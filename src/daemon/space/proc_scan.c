#include "daemon/space/proc_scan.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "daemon/util/procfs.h"

/* Adds a server, unless it is a zombie (procfs_start_time() fails), which serves no client. */
static void add_server(struct mps_processes *s, int pid)
{
	struct mps_server server = { .pid = pid, .is_stopped = procfs_is_stopped(pid) };
	if (s->server_count < MPS_SERVERS_MAX && procfs_start_time(pid, &server.start_time) >= 0)
		s->server[s->server_count++] = server;
}

/* Any thread of the control daemon may start a server. /proc/PID/task/TID/children lists a thread's children (proc(5)). */
static void add_children(struct mps_processes *s, int pid, const char *task)
{
	char name[64], text[512], *save = NULL;
	snprintf(name, sizeof(name), "task/%.20s/children", task);
	if (procfs_read(pid, name, text, sizeof(text)) <= 0)
		return;
	for (char *word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save))
		add_server(s, atoi(word));
}

void mps_scan(int control_pid, struct mps_processes *ret)
{
	char path[64];
	*ret = (struct mps_processes){ .is_stopped = procfs_is_stopped(control_pid) };
	snprintf(path, sizeof(path), "/proc/%d/task", control_pid);
	cleanup_dir DIR *dir = opendir(path);
	for (struct dirent *entry; dir && (entry = readdir(dir));)
		if (entry->d_name[0] != '.')
			add_children(ret, control_pid, entry->d_name);
}

bool mps_is_over(const struct mps_server *server)
{
	uint64_t start_time;
	char text[2048];
	int threads = 0;
	int r = procfs_start_time(server->pid, &start_time);
	if (r != -ESRCH)
		return r >= 0 && start_time != server->start_time;
	if (procfs_read(server->pid, "status", text, sizeof(text)) <= 0)
		return true;
	/* A zombie's count includes the zombie itself, and threads that have not ended. */
	const char *line = strstr(text, "\nThreads:");
	return !line || sscanf(line, " Threads: %d", &threads) != 1 || threads <= 1;
}

const char *mps_line_text(const char *line)
{
	const char *end = *line == '[' ? strstr(line, "] ") : NULL;
	return end ? end + 2 : line;
}

enum mps_line mps_read_line(const char *line, int *ret_pid)
{
	const char *text = mps_line_text(line);
	int pid, status;
	*ret_pid = 0;
	if (sscanf(text, "Try shutting down server %d", &pid) == 1) {
		*ret_pid = pid;
		return MPS_LINE_SERVER_QUITS;
	}
	if (sscanf(text, "Server %d exited with status %d", &pid, &status) == 2) {
		*ret_pid = pid;
		return MPS_LINE_SERVER_ENDED;
	}
	if (sscanf(text, "Client {PID: %d,", &pid) == 1 && strstr(text, "Worker is in reset")) {
		*ret_pid = pid;
		return MPS_LINE_CLIENT_FAILED;
	}
	/* MPS's manual uses this phrase for faults that the server does not survive. */
	if (strstr(text, "fatal exception")) {
		if (sscanf(line, "[%*s %*s Server %d]", &pid) == 1)
			*ret_pid = pid;
		return MPS_LINE_SERVER_FAULT;
	}
	return MPS_LINE_OTHER;
}
