/*
 * daemon_storm: the daemon is killed (-9) and started again, over and over, while three tenants hold
 * and wait for leases and each asks all the time for more memory than it may have. No launch takes
 * longer than a second, nobody gets memory over the quota, every process moves to each new daemon's
 * files with what it holds, and in the end the shares are right again.
 *
 *     daemon_storm [--kills N]     100 when not said
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "load.h"
#include "stage.h"
#include "stillness.h"

#define TENANTS 3
#define CONTEXT (64 * MIB)
#define HELD (300 * MIB)
#define QUOTA (512 * MIB)
#define MOVE_PATIENCE_NS 30000000000ULL
#define MOVE_NS 3000000000ULL

static const double promised[TENANTS] = { 45, 30, 15 };

static int be_process(char **argv)
{
	static const struct load_options options = {
		.kernel_us = 1000,
		.batch = 8,
		.hold_bytes = HELD,
		.too_much = QUOTA - CONTEXT - HELD + 2 * MIB,
	};
	struct load_figures *board = open_board(argv[2], TENANTS * sizeof(*board));

	return load_run(&board[atoi(argv[3])], &options);
}

struct tally {
	unsigned restarts, moved, lost;
	uint64_t longest_move_ns;
	uint64_t most_on_card;
	uint64_t longest_launch_ns;
};

/* All processes in the new daemon's report, with what they hold. */
static bool are_all_moved(struct stage *s, const pid_t *pids)
{
	for (unsigned i = 0; i < TENANTS; i++) {
		const struct stage_tenant *t = &s->tenant[i];
		int slot = stage_slot_of(t, pids[i]);
		if (slot < 0 || !atomic_load(&t->report->slot[slot].migrated) ||
		    atomic_load(&t->report->slot[slot].device[0].used_bytes) < CONTEXT + HELD)
			return false;
	}
	return true;
}

static void look_at_card(struct stage *s, const pid_t *pids, struct tally *tally)
{
	for (unsigned i = 0; i < TENANTS; i++) {
		uint64_t used = stage_card_used(s, pids[i]);
		if (used > tally->most_on_card)
			tally->most_on_card = used;
	}
}

static void rest(struct stage *s, const pid_t *pids, struct tally *tally, unsigned ms)
{
	for (uint64_t end = now_ns() + ms * 1000000ULL; now_ns() < end; sleep_ms(5))
		look_at_card(s, pids, tally);
}

static void restart_once(struct stage *s, const pid_t *pids, uint64_t *random, struct tally *tally)
{
	uint64_t epochs[TENANTS];

	for (unsigned i = 0; i < TENANTS; i++)
		epochs[i] = s->tenant[i].control->epoch;
	stage_kill_daemon(s);
	/* Back at once, or after the processes have noticed. */
	rest(s, pids, tally, (unsigned)(random_of(random) % 500));
	uint64_t begin = now_ns();
	stage_start_daemon(s);
	stage_attach(s);
	for (unsigned i = 0; i < TENANTS; i++) {
		stage_watch(&s->tenant[i]);
		if (s->tenant[i].control->epoch == epochs[i])
			give_up("the new daemon has the old one's epoch");
	}
	uint64_t took;
	bool is_moved;
	do {
		sleep_ms(2);
		took = now_ns() - begin;
		is_moved = are_all_moved(s, pids);
	} while (!is_moved && took < MOVE_PATIENCE_NS);
	tally->restarts++;
	tally->moved += is_moved;
	if (took > tally->longest_move_ns)
		tally->longest_move_ns = took;
	rest(s, pids, tally, (unsigned)(random_of(random) % 400));
}

static void check_shares(struct stage *s, const pid_t *pids)
{
	const struct stage_tenant *tenant[TENANTS];
	uint64_t busy_ns[TENANTS], begin = now_ns(), still_ns = stillness_sum_ns();
	double got[TENANTS];

	for (unsigned i = 0; i < TENANTS; i++)
		busy_ns[i] = stage_card_busy_ns(s, pids[i]);
	sleep_ms(5000);
	double elapsed_ns = (double)(now_ns() - begin);
	for (unsigned i = 0; i < TENANTS; i++) {
		tenant[i] = &s->tenant[i];
		got[i] = (double)(stage_card_busy_ns(s, pids[i]) - busy_ns[i]) / elapsed_ns * 100;
	}
	bar_shares("daemon_storm.share", TENANTS, tenant, promised, got,
		   (double)(stillness_sum_ns() - still_ns) / elapsed_ns * 100);
}

int main(int argc, char **argv)
{
	static struct stage stage;
	struct tally tally = { 0 };
	pid_t pids[TENANTS];
	uint64_t random = 1234, over = 0, refused = 0;
	int fd;

	if (argc == 4 && !strcmp(argv[1], "process"))
		return be_process(argv);
	unsigned kills = argc == 3 && !strcmp(argv[1], "--kills") ? (unsigned)atoi(argv[2]) : 100;

	stage_start(&stage, "memory = 16 GiB\ncontext = 64 MiB\n", "");
	struct load_figures *board = shared_board(TENANTS * sizeof(*board), &fd);
	for (unsigned i = 0; i < TENANTS; i++) {
		char name[16], number[16], fd_text[16];
		snprintf(name, sizeof(name), "tenant%.0f", promised[i]);
		snprintf(number, sizeof(number), "%u", i);
		snprintf(fd_text, sizeof(fd_text), "%d", fd);
		char *const args[] = { argv[0], (char *)"process", fd_text, number, NULL };
		struct stage_tenant *t = stage_add_tenant(&stage, name, QUOTA, promised[i], 0);
		stage_watch(t);
		pids[i] = stage_spawn(&stage, t, args);
	}
	for (unsigned i = 0; i < TENANTS; i++)
		while (!board[i].runs)
			sleep_ms(5);
	rest(&stage, pids, &tally, 1000);
	for (unsigned i = 0; i < TENANTS; i++)
		atomic_store(&board[i].longest_ns, 0);
	uint64_t begin = now_ns();
	for (unsigned i = 0; i < kills; i++)
		restart_once(&stage, pids, &random, &tally);
	for (unsigned i = 0; i < TENANTS; i++) {
		over += board[i].over_quota;
		refused += board[i].refused;
		if (board[i].longest_ns > tally.longest_launch_ns)
			tally.longest_launch_ns = board[i].longest_ns;
		if (waitpid(pids[i], NULL, WNOHANG) != 0)
			give_up("a process of %s has ended", stage.tenant[i].name);
	}
	printf("%u restarts in %.1f s\n", tally.restarts, (double)(now_ns() - begin) / 1e9);
	bar_time("daemon_storm.launch", tally.longest_launch_ns, 1000000000ULL,
		 "no launch took longer than %.1f ms", (double)tally.longest_launch_ns / 1e6);
	bar("daemon_storm.quota", over == 0 && refused > 0 && tally.most_on_card <= QUOTA,
	    "%llu allocations over the quota succeeded, %llu were refused; at most %.0f of %.0f "
	    "MiB on "
	    "the card",
	    (unsigned long long)over, (unsigned long long)refused,
	    (double)tally.most_on_card / (double)MIB, (double)QUOTA / (double)MIB);
	bar("daemon_storm.moved", tally.moved == tally.restarts,
	    "%u of %u times all processes moved to the new files", tally.moved, tally.restarts);
	bar_time("daemon_storm.move", tally.longest_move_ns, MOVE_NS, "within %.0f ms of the start",
		 (double)tally.longest_move_ns / 1e6);
	rest(&stage, pids, &tally, 2000);
	check_shares(&stage, pids);
	for (unsigned i = 0; i < TENANTS; i++)
		kill_and_wait(pids[i]);
	stage_stop(&stage);
	return bar_status();
}
