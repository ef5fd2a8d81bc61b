#include "daemon/space/group.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "daemon/space/group_inside.h"
#include "daemon/util/procfs.h"

#define LOOK_NS (100 * NSEC_PER_MSEC)
#define QUIT_NS (3 * NSEC_PER_SEC) /* how long a control daemon may take to end by itself */
/* longest wait for the end of killed servers; after it, a control daemon is started even if some still run */
#define OVER_NS (5 * NSEC_PER_SEC)
/* A start that fails this soon after a restart began is retried, because old processes may still disturb it. */
#define SETTLE_NS (10 * NSEC_PER_SEC)
#define RESTARTS_MOST 5 /* most restarts within RESTARTS_NS without a new member */
#define RESTARTS_NS (60 * NSEC_PER_SEC)

static const char *const states[] = {
	[MPS_OFF] = "off",   [MPS_STARTING] = "starting", [MPS_READY] = "ready",
	[MPS_HUNG] = "hung", [MPS_FAILED] = "failed",     [MPS_ENDING] = "ending"
};
static const char *const faults[MPS_FAULTS] = { [MPS_FAULT_START] = "start",
						[MPS_FAULT_CONTROL] = "control",
						[MPS_FAULT_SERVER] = "server",
						[MPS_FAULT_HUNG] = "hung",
						[MPS_FAULT_CLIENT] = "client" };

const char *mps_state_name(enum mps_state state)
{
	return states[state];
}

const char *mps_fault_name(enum mps_fault fault)
{
	return faults[fault];
}

static struct mps_spawn spawn_of(const struct mps_group *g, char pipe_dir[NODE_PATH_MAX])
{
	mps_path(g->node, g->record.id, "/pipe", pipe_dir);
	return (struct mps_spawn){ .program = g->program,
				   .pipe_dir = pipe_dir,
				   .sim_socket = g->node->sim_socket,
				   .uid = g->record.uid };
}

int mps_run_command(struct mps_group *g, const char *command, uint64_t timeout_ns,
		    mps_command_done done)
{
	char pipe_dir[NODE_PATH_MAX];
	struct error err = { 0 };
	struct mps_spawn s = spawn_of(g, pipe_dir);
	int r = mps_command_start(g->node->loop, &s, command, timeout_ns, done, g, &g->command,
				  &err);
	if (r < 0)
		log_debug("group '%s': %s: %s", g->record.group, command, err.text);
	return r;
}

void mps_report_fault(struct mps_group *g, enum mps_fault fault, int pid, const char *what)
{
	g->faulted(g, fault, pid, what);
}

static void reset_group(struct mps_group *g)
{
	g->source = loop_remove(g->source);
	close_fd(&g->pidfd);
	close_fd(&g->log_fd);
	g->command = mps_command_free(g->command);
	loop_disarm(g->timer);
	g->scanned = (struct mps_processes){ 0 };
	g->stopped_scans = 0;
	g->quitting = g->gone = g->faulty = 0;
	g->is_start_requested = false;
}

void mps_kill(struct mps_group *g)
{
	struct mps_server control = { .pid = g->record.pid, .start_time = g->record.start_time };
	struct mps_processes now = { 0 };
	if (g->pidfd < 0)
		return;
	/* If the control daemon has ended, another process may have its pid: leave that process's children alone. */
	if (!mps_is_over(&control))
		mps_scan(control.pid, &now);
	for (unsigned i = 0; i < now.server_count; i++) {
		mps_add_old_server(g, &now.server[i]);
		kill(now.server[i].pid, SIGKILL);
	}
	syscall(SYS_pidfd_send_signal, g->pidfd, SIGKILL, NULL, 0);
}

void mps_add_old_server(struct mps_group *g, const struct mps_server *server)
{
	for (unsigned i = 0; i < g->old_count; i++)
		if (g->old[i].pid == server->pid || mps_is_over(&g->old[i])) {
			g->old[i] = *server;
			return;
		}
	if (g->old_count < MPS_SERVERS_MAX)
		g->old[g->old_count++] = *server;
}

void mps_kill_to_restart(struct mps_group *g)
{
	g->command = mps_command_free(g->command);
	g->state = MPS_ENDING; /* mps_handle_exit() then starts a control daemon again */
	g->begun_ns = clock_now_ns();
	*g->why = '\0';
	mps_kill(g);
}

void mps_fail(struct mps_group *g, const char *why)
{
	char text[MPS_WHY_MAX];
	snprintf(text, sizeof(text), "%s", why);
	if (g->pidfd >= 0) {
		mps_kill(g);
		reset_group(g);
	}
	g->record.pid = 0;
	g->again_ns = 0;
	g->state = MPS_FAILED;
	snprintf(g->why, sizeof(g->why), "%s", text);
	mps_report_fault(g, MPS_FAULT_START, 0, g->why);
}

/* Reports that the control daemon ended before it could be watched. Its output is the only explanation. */
static int ended_at_once(const struct mps_group *g, struct error *err)
{
	char text[MPS_WHY_MAX];
	ssize_t n = pread(g->log_fd, text, sizeof(text) - 1, 0);
	text[n > 0 ? n : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	text_clean(text);
	return error_set(err, ESRCH, MPS_PROGRAM ": ended as soon as it was started%s%s",
			 *text ? ": " : "", mps_line_text(text));
}

static int watch(struct mps_group *g, struct error *err)
{
	uint64_t start_time;
	g->pidfd = (int)syscall(SYS_pidfd_open, g->record.pid, 0);
	if (g->pidfd < 0 && errno == ESRCH)
		return ended_at_once(g, err);
	if (g->pidfd < 0)
		return error_set_errno(err, errno, MPS_PROGRAM " (pid %d)", g->record.pid);
	int r = procfs_start_time(g->record.pid, &start_time);
	if (r == -ESRCH || (r >= 0 && g->record.start_time && start_time != g->record.start_time))
		return ended_at_once(g, err);
	if (r < 0)
		return error_set_errno(err, -r, MPS_PROGRAM " (pid %d)", g->record.pid);
	g->record.start_time = start_time;
	r = loop_add(g->node->loop, g->pidfd, EPOLLIN, mps_control_exited, g, &g->source);
	if (r < 0)
		return error_set_errno(err, -r, MPS_PROGRAM);
	g->state = MPS_STARTING;
	g->begun_ns = clock_now_ns();
	g->checked_ns = 0;
	*g->why = *g->last_line = '\0';
	loop_arm(g->timer, LOOK_NS / 4, LOOK_NS);
	return 0;
}

static int spawn(struct mps_group *g, struct error *err)
{
	char pipe_dir[NODE_PATH_MAX], log_dir[NODE_PATH_MAX];
	mps_path(g->node, g->record.id, "/log", log_dir);
	cleanup_fd int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int r = null_fd < 0 ? error_set_errno(err, errno, "/dev/null")
			    : mps_make_dirs(g->node, &g->record, g->is_open, err);
	if (r >= 0)
		r = g->log_fd = mps_open_log(g->node, g->record.id, true, err);
	if (r < 0)
		return r;
	g->log_at = 0;
	g->line_length = 0;
	struct mps_spawn s = spawn_of(g, pipe_dir);
	/* in the foreground, so that control daemon and servers write to out_fd */
	s.argument = "-f";
	s.log_dir = log_dir;
	s.device = g->record.card->info.uuid_text;
	s.in_fd = null_fd;
	s.out_fd = g->log_fd;
	s.is_detached = true;
	r = mps_spawn(&s, err);
	if (r < 0)
		return r;
	g->record.pid = r;
	g->record.start_time = 0;
	return 0;
}

static int start(struct mps_group *g, struct error *err)
{
	int r = mps_find_program(g->node->simulated, g->program, err);
	if (r >= 0)
		r = spawn(g, err);
	if (r >= 0)
		r = watch(g, err);
	if (r >= 0)
		r = mps_save(g->node, &g->record, err);
	if (r < 0) {
		mps_kill(g);
		reset_group(g);
		g->record.pid = 0;
		g->state = MPS_OFF;
		return r;
	}
	log_info_of(g->record.uid,
		    "GPU %u: group '%s' of uid %u: MPS control daemon started (pid %d)",
		    g->record.card->index, g->record.group, (unsigned)g->record.uid, g->record.pid);
	return 0;
}

/* Takes over the MPS control daemon that the previous allotd started. It counts as ready once it answers. */
static int take_over(struct mps_group *g, struct error *err)
{
	int r = mps_find_program(g->node->simulated, g->program, err);
	if (r >= 0)
		r = g->log_fd = mps_open_log(g->node, g->record.id, false, err);
	if (r >= 0) {
		/* start at the log's end: the previous daemon has read the log up to there */
		g->log_at = lseek(g->log_fd, 0, SEEK_END);
		r = watch(g, err);
	}
	if (r < 0) {
		reset_group(g);
		g->record.pid = 0;
		g->state = MPS_OFF;
	}
	return r;
}

int mps_group_new(struct node *node, const struct mps_record *record, bool is_open,
		  mps_faulted faulted, mps_ended ended, struct mps_group **ret, struct error *err)
{
	struct error ignored = { 0 };
	struct mps_group *g = calloc(1, sizeof(*g));
	if (!g)
		return error_set_errno(err, ENOMEM, "group '%s'", record->group);
	*g = (struct mps_group){ .node = node,
				 .record = *record,
				 .is_open = is_open,
				 .faulted = faulted,
				 .ended = ended,
				 .pidfd = -1,
				 .log_fd = -1 };
	int r = loop_add_timer(node->loop, mps_watch_due, g, &g->timer);
	if (r < 0) {
		free(g);
		return error_set_errno(err, -r, "group '%s'", record->group);
	}
	if (g->record.pid && take_over(g, &ignored) < 0)
		log_info_of(g->record.uid,
			    "GPU %u: group '%s': its MPS control daemon has ended (%s)",
			    record->card->index, record->group, ignored.text);
	*ret = g;
	return 0;
}

int mps_group_start(struct mps_group *g, struct error *err)
{
	g->restarts = 0;
	switch (g->state) {
	case MPS_OFF:
	case MPS_FAILED: return start(g, err);
	case MPS_HUNG:
		log_warning_of(g->record.uid,
			       "GPU %u: group '%s': %s: MPS is restarted for this group",
			       g->record.card->index, g->record.group, g->why);
		mps_kill_to_restart(g);
		return 0;
	case MPS_STARTING:
	case MPS_READY:
	case MPS_ENDING: return 0;
	}
	return 0;
}

/* Kills old servers that still run, since a stopped one does not end by itself. Returns true if all have ended. */
static bool end_old(struct mps_group *g)
{
	unsigned count = 0;
	uint64_t start_time;
	for (unsigned i = 0; i < g->old_count; i++) {
		const struct mps_server *old = &g->old[i];
		if (mps_is_over(old))
			continue;
		if (procfs_start_time(old->pid, &start_time) >= 0 && start_time == old->start_time)
			kill(old->pid, SIGKILL);
		g->old[count++] = *old;
	}
	g->old_count = count;
	return !count;
}

static void wait_to_start(struct mps_group *g)
{
	g->state = MPS_ENDING;
	loop_arm(g->timer, LOOK_NS, LOOK_NS);
}

void mps_restart_when_clear(struct mps_group *g)
{
	struct error err = { 0 };
	if (!end_old(g) && clock_now_ns() - g->again_ns < OVER_NS) {
		wait_to_start(g);
		return;
	}
	g->old_count = 0;
	if (start(g, &err) >= 0)
		return;
	if (mps_is_settling(g))
		wait_to_start(g);
	else
		mps_fail(g, err.text);
}

bool mps_is_settling(const struct mps_group *g)
{
	return g->again_ns && clock_now_ns() - g->again_ns < SETTLE_NS;
}

static bool count_restart(struct mps_group *g, uint64_t now_ns)
{
	if (!g->restarts || now_ns - g->restarts_since_ns > RESTARTS_NS) {
		g->restarts = 0;
		g->restarts_since_ns = now_ns;
	}
	return g->restarts++ < RESTARTS_MOST;
}

void mps_handle_exit(struct mps_group *g)
{
	uint64_t now_ns = clock_now_ns();
	for (unsigned i = 0; i < g->scanned.server_count; i++)
		mps_add_old_server(g, &g->scanned.server[i]);
	reset_group(g);
	g->record.pid = 0;
	g->state = MPS_OFF;
	if (!g->members) {
		end_old(g);
		mps_delete_files(g->node, g->record.id);
		log_info_of(g->record.uid, "GPU %u: group '%s' of uid %u: MPS control daemon ended",
			    g->record.card->index, g->record.group, (unsigned)g->record.uid);
		g->ended(g);
		return;
	}
	bool is_first = !g->again_ns;
	if (is_first ? !count_restart(g, now_ns) : !mps_is_settling(g)) {
		mps_fail(g,
			 "its MPS control daemon keeps ending and is not restarted; the next tenant "
			 "that joins the group starts it again");
		return;
	}
	if (is_first) {
		g->again_ns = now_ns;
		mps_restart_when_clear(g);
	} else {
		wait_to_start(g);
	}
}

static void quit_done(void *data, int status, const char *text)
{
	struct mps_group *g = data;
	g->command = NULL;
	log_debug("group '%s': quit: %d %s", g->record.group, status, text);
}

void mps_group_end(struct mps_group *g)
{
	if (g->pidfd < 0) {
		mps_handle_exit(g);
		return;
	}
	g->command = mps_command_free(g->command);
	bool is_hung = g->state == MPS_HUNG;
	g->state = MPS_ENDING;
	g->begun_ns = clock_now_ns();
	*g->why = '\0';
	if (is_hung || mps_run_command(g, "quit -t 1", QUIT_NS, quit_done) < 0)
		mps_kill(g);
	/* after QUIT_NS, group_watch.c kills a control daemon that has not ended */
	loop_arm(g->timer, QUIT_NS, NSEC_PER_SEC);
}

struct mps_group *mps_group_free(struct mps_group *g)
{
	if (!g)
		return NULL;
	if (!g->members) {
		mps_kill(g);
		mps_delete_files(g->node, g->record.id);
	}
	reset_group(g);
	loop_remove(g->timer);
	free(g);
	return NULL;
}
