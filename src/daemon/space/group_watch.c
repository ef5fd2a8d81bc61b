/* Watches a group's MPS control daemon and servers, while they start and afterwards. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "daemon/space/group.h"
#include "daemon/space/group_inside.h"

/* Longest time from a control daemon's start until set_ready(). It is long, because a faulty card starts slowly. */
#define START_NS (60 * NSEC_PER_SEC)
#define ANSWER_NS (NSEC_PER_SEC) /* timeout of a command to the control daemon */
/* How often the control daemon is asked whether it answers. */
#define CHECK_NS (10 * NSEC_PER_SEC)
/* longest time that killed processes may take to end; then the group fails */
#define END_NS (10 * NSEC_PER_SEC)
/* A server's status is polled for this long after its fault message. */
#define FAULT_NS (3 * NSEC_PER_SEC)
/* A stopped process is reported only after this many scans in a row, because a debugger may soon continue it. */
#define STOPPED_SCANS 3
#define LOG_MOST (1 << 20) /* bytes; a longer log is emptied */

static void server_exited(struct mps_group *g, int pid)
{
	char what[MPS_WHY_MAX];
	if (pid == g->gone)
		return;
	g->gone = pid;
	if (pid == g->quitting || g->state == MPS_ENDING || g->state == MPS_STARTING)
		return;
	snprintf(what, sizeof(what),
		 "its MPS server (pid %d) ended, and the GPU work of all in the group with it", pid);
	mps_report_fault(g, MPS_FAULT_SERVER, pid, what);
	mps_kill_to_restart(g);
}

/* Returns true if the line may explain a failed start. "rror" is in "error" and "Error", "annot" in "cannot" and "Cannot". */
static bool explains_failure(const char *text)
{
	static const char *const words[] = { "fail",           "Fail",          "rror", "annot",
					     "only supported", "not supported", "fatal" };
	if (strstr(text, "assuming client"))
		return false;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strstr(text, words[i]))
			return true;
	return false;
}

static void parse_line(struct mps_group *g, char *line)
{
	char what[MPS_WHY_MAX];
	int pid;
	text_clean(line);
	switch (mps_read_line(line, &pid)) {
	case MPS_LINE_SERVER_QUITS: g->quitting = pid; break;
	case MPS_LINE_SERVER_ENDED: server_exited(g, pid); break;
	case MPS_LINE_CLIENT_FAILED:
		snprintf(what, sizeof(what),
			 "a fault of process %d: the MPS server discarded the GPU work of that "
			 "process",
			 pid);
		mps_report_fault(g, MPS_FAULT_CLIENT, pid, what);
		break;
	case MPS_LINE_SERVER_FAULT:
		snprintf(what, sizeof(what), "MPS: %.200s", mps_line_text(line));
		mps_report_fault(g, MPS_FAULT_SERVER, pid, what);
		g->faulty = pid;
		g->faulty_ns = clock_now_ns();
		break;
	case MPS_LINE_OTHER: break;
	}
	if (explains_failure(mps_line_text(line)))
		snprintf(g->last_line, sizeof(g->last_line), "%.250s", mps_line_text(line));
}

static void parse_log(struct mps_group *g, const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (text[i] != '\n') {
			if (g->line_length < sizeof(g->line) - 1)
				g->line[g->line_length++] = text[i];
			continue;
		}
		g->line[g->line_length] = '\0';
		g->line_length = 0;
		parse_line(g, g->line);
	}
}

static void read_log(struct mps_group *g)
{
	char text[4096];
	for (ssize_t n = 1; g->log_fd >= 0 && n > 0;) {
		n = pread(g->log_fd, text, sizeof(text), g->log_at);
		if (n <= 0)
			break;
		g->log_at += n;
		parse_log(g, text, (size_t)n);
	}
	/* Control daemon and servers open the log for appending, so they continue at its new end. */
	if (g->log_fd >= 0 && g->log_at > LOG_MOST && ftruncate(g->log_fd, 0) == 0)
		g->log_at = 0;
}

static void set_ready(struct mps_group *g)
{
	g->state = MPS_READY;
	g->again_ns = 0;
	mps_scan(g->record.pid, &g->scanned);
	g->checked_ns = clock_now_ns();
	log_info_of(g->record.uid, "GPU %u: group '%s' of uid %u: MPS is ready",
		    g->record.card->index, g->record.group, (unsigned)g->record.uid);
}

static void status_done(void *data, int status, const char *text)
{
	struct mps_group *g = data;
	g->command = NULL;
	if (g->state != MPS_STARTING)
		return;
	/* A driver without get_server_status answers with another text; its server counts as ready once it is listed. */
	if (status == 0 && !strstr(text, "INITIALIZING") && !strstr(text, "FAULT"))
		set_ready(g);
}

static void start_done(void *data, int status, const char *text)
{
	struct mps_group *g = data;
	g->command = NULL;
	g->is_start_requested = status == 0;
}

static void list_done(void *data, int status, const char *text)
{
	struct mps_group *g = data;
	char command[48];
	int server = atoi(text);
	g->command = NULL;
	if (g->state != MPS_STARTING || status != 0)
		return;
	if (server > 0) {
		snprintf(command, sizeof(command), "get_server_status %d", server);
		mps_run_command(g, command, START_NS, status_done);
	} else if (g->is_start_requested && *g->last_line && !mps_is_settling(g)) {
		mps_fail(g, g->last_line);
	} else {
		snprintf(command, sizeof(command), "start_server -uid %u", (unsigned)g->record.uid);
		mps_run_command(g, command, ANSWER_NS, start_done);
	}
}

static void start_due(struct mps_group *g)
{
	char why[MPS_WHY_MAX];
	if (g->command)
		return;
	if (clock_now_ns() - g->begun_ns > START_NS) {
		snprintf(why, sizeof(why), "MPS is not ready after %d s%s%.180s",
			 (int)(START_NS / NSEC_PER_SEC), *g->last_line ? ": " : "", g->last_line);
		mps_fail(g, why);
		return;
	}
	mps_run_command(g, "get_server_list", ANSWER_NS, list_done);
}

static bool is_in(const struct mps_processes *scanned, int pid)
{
	for (unsigned i = 0; i < scanned->server_count; i++)
		if (scanned->server[i].pid == pid)
			return true;
	return false;
}

static void set_hung(struct mps_group *g, int pid, const char *who, const char *how)
{
	if (g->state != MPS_READY)
		return;
	g->state = MPS_HUNG;
	snprintf(g->why, sizeof(g->why), "its MPS %s (pid %d) %s", who, pid, how);
	mps_report_fault(g, MPS_FAULT_HUNG, pid, g->why);
}

static void clear_hung(struct mps_group *g)
{
	if (g->state != MPS_HUNG)
		return;
	log_info_of(g->record.uid, "GPU %u: group '%s': MPS answers again", g->record.card->index,
		    g->record.group);
	g->state = MPS_READY;
	*g->why = '\0';
}

static void check_done(void *data, int status, const char *text)
{
	struct mps_group *g = data;
	g->command = NULL;
	if (status == -ETIMEDOUT)
		set_hung(g, g->record.pid, "control daemon", "does not answer");
	else if (!g->stopped_scans)
		clear_hung(g);
}

/*
 * A server in state FAULT takes no new client before all its clients have ended, which may never happen. So this function
 * starts a new control daemon.
 */
static void fault_done(void *data, int status, const char *text)
{
	struct mps_group *g = data;
	g->command = NULL;
	if (status == 0 && strstr(text, "FAULT") && (g->state == MPS_READY || g->state == MPS_HUNG))
		mps_kill_to_restart(g);
}

static void check_fault(struct mps_group *g, uint64_t now_ns)
{
	char command[48];
	if (now_ns - g->faulty_ns > FAULT_NS) {
		g->faulty = 0;
		return;
	}
	snprintf(command, sizeof(command), "get_server_status %d", g->faulty);
	mps_run_command(g, command, ANSWER_NS, fault_done);
}

static void detect_stopped(struct mps_group *g)
{
	int pid = g->scanned.is_stopped ? g->record.pid : 0;
	for (unsigned i = 0; !pid && i < g->scanned.server_count; i++)
		pid = g->scanned.server[i].is_stopped ? g->scanned.server[i].pid : 0;
	if (!pid) {
		if (g->stopped_scans)
			/* the stopped process runs again or is gone: ask the control daemon at once */
			g->checked_ns = 0;
		g->stopped_scans = 0;
		return;
	}
	if (++g->stopped_scans == STOPPED_SCANS)
		set_hung(g, pid, pid == g->record.pid ? "control daemon" : "server", "is stopped");
}

/* Returns true if the control daemon has ended: its servers then end too, and must not be reported one by one. */
static bool is_control_over(const struct mps_group *g)
{
	struct pollfd p = { .fd = g->pidfd, .events = POLLIN };
	return poll(&p, 1, 0) > 0;
}

/* Returns false if the control daemon has ended, or if a reported exit moved the group out of MPS_READY and MPS_HUNG. */
static bool detect_exits(struct mps_group *g)
{
	struct mps_processes before = g->scanned;
	mps_scan(g->record.pid, &g->scanned);
	for (unsigned i = 0; i < before.server_count; i++) {
		if (is_in(&g->scanned, before.server[i].pid))
			continue;
		/* Check this after the scan missed the server: if the control daemon is gone too, the server ended with it. */
		if (is_control_over(g)) {
			g->scanned = before;
			return false;
		}
		mps_add_old_server(g, &before.server[i]);
		server_exited(g, before.server[i].pid);
	}
	return g->state == MPS_READY || g->state == MPS_HUNG;
}

bool mps_group_is_starting(struct mps_group *g)
{
	if (g->state == MPS_READY && (is_control_over(g) || !detect_exits(g)))
		return true;
	return g->state == MPS_STARTING || g->state == MPS_ENDING;
}

static void watch_due(struct mps_group *g)
{
	uint64_t now_ns = clock_now_ns();
	if (!detect_exits(g))
		return;
	detect_stopped(g);
	if (g->faulty && !g->command)
		check_fault(g, now_ns);
	if (g->command || g->stopped_scans || now_ns - g->checked_ns < CHECK_NS)
		return;
	g->checked_ns = now_ns;
	mps_run_command(g, "get_server_list", ANSWER_NS, check_done);
}

/*
 * The timer calls this while the control daemon still runs in state MPS_ENDING. Kills it until END_NS has passed. Then tells
 * the members that it has not exited or, without members, logs this once.
 */
static void end_due(struct mps_group *g)
{
	static const char why[] = "the group's MPS control daemon (nvidia-cuda-mps-control) was "
				  "killed, but has not exited";
	if (clock_now_ns() - g->begun_ns <= END_NS) {
		mps_kill(g);
	} else if (g->members) {
		mps_fail(g, why);
	} else if (!*g->why) {
		snprintf(g->why, sizeof(g->why), "%s", why);
		log_warning_of(g->record.uid, "GPU %u: group '%s' of uid %u: %s (pid %d)",
			       g->record.card->index, g->record.group, (unsigned)g->record.uid, why,
			       g->record.pid);
	}
}

void mps_watch_due(void *data, uint32_t events)
{
	struct mps_group *g = data;
	if (g->state == MPS_ENDING && g->pidfd < 0) {
		mps_restart_when_clear(g);
		return;
	}
	read_log(g);
	switch (g->state) {
	case MPS_STARTING: start_due(g); break;
	case MPS_READY:
	case MPS_HUNG: watch_due(g); break;
	case MPS_ENDING: end_due(g); break;
	case MPS_OFF:
	case MPS_FAILED: break;
	}
}

void mps_control_exited(void *data, uint32_t events)
{
	struct mps_group *g = data;
	char what[MPS_WHY_MAX];
	int pid = g->record.pid;
	read_log(g);
	bool was_starting = g->state == MPS_STARTING && !g->scanned.server_count;
	if (was_starting && *g->last_line && g->members && !mps_is_settling(g)) {
		mps_fail(g, g->last_line);
		return;
	}
	if (g->state == MPS_READY || g->state == MPS_HUNG) {
		snprintf(what, sizeof(what),
			 "its MPS control daemon (pid %d) ended, and the GPU work of all in the group with it",
			 pid);
		mps_report_fault(g, MPS_FAULT_CONTROL, pid, what);
	}
	mps_handle_exit(g);
}
