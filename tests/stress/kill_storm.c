/*
 * kill_storm: processes are killed at random points (being loaded, registering, allocating, launching,
 * holding the lease). Within 100 ms of its end its slot is empty, its memory back in the ledger
 * and on the card, and its tenant no longer holds the lease: 995 of 1,000 times, as the machine itself may
 * stand still for longer, and always within a second. Two survivors, capped at 40 and 20 %, have
 * what they were promised all along.
 *
 *     kill_storm [--kills N]     1000 when not said
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu.h"
#include "load.h"
#include "stage.h"
#include "stillness.h"

#define VICTIM_TENANTS 3
#define SURVIVORS 2
#define BACK_WITHIN_NS (100 * 1000000ULL)

/* ---- the victims ---- */

static _Noreturn void be_victim(char **argv)
{
	uint64_t random = strtoull(argv[2], NULL, 10) * 2 + 1;
	CUdeviceptr held[16] = { 0 };

	gpu_start();
	CUfunction kernel = gpu_kernel(500);
	CUstream stream = gpu_stream();
	for (;;) {
		unsigned i = (unsigned)(random_of(&random) % 16);
		if (held[i]) {
			GPU_DO(cuMemFree_v2(held[i]));
			held[i] = 0;
		} else if (cuMemAlloc_v2(&held[i], random_of(&random) % (32 * MIB) + 1)) {
			held[i] = 0;
		}
		for (uint64_t n = random_of(&random) % 8; n; n--)
			gpu_launch(kernel, stream);
		if (random_of(&random) % 8 == 0)
			GPU_DO(cuStreamSynchronize(stream));
	}
}

/* ---- the parent ---- */

struct tally {
	unsigned kills, unregistered, empty, with_memory, busy, leased;
	uint64_t longest_ns;
	unsigned late;
};

static bool is_leased(const struct stage_tenant *t)
{
	enum lease_state state = lease_state_of(atomic_load(&t->control->device[0].lease));

	return state == LEASE_GO || state == LEASE_CLOSING;
}

static void note_state(struct tally *tally, const struct stage_tenant *t, pid_t pid)
{
	int slot = stage_slot_of(t, pid);

	tally->kills++;
	if (slot < 0) {
		tally->unregistered++;
		return;
	}
	const struct region_slot_device *d = &t->report->slot[slot].device[0];
	if (!atomic_load(&d->used_bytes))
		tally->empty++;
	else
		tally->with_memory++;
	tally->busy += atomic_load(&d->busy) || atomic_load(&d->launching);
	tally->leased += is_leased(t);
}

static bool is_all_back(struct stage *s, const struct stage_tenant *t, pid_t pid)
{
	return stage_slot_of(t, pid) < 0 && stage_slots_used(t) == 0 && !is_leased(t) &&
	       stage_card_used(s, pid) == 0;
}

static void kill_one(struct stage *s, struct stage_tenant *t, uint64_t *random, char *self,
		     struct tally *tally)
{
	char seed[32];
	/* Half die while they start, which takes some 2 ms; the rest at work. */
	unsigned delay_us = (unsigned)(random_of(random) % (random_of(random) % 2 ? 40000 : 2500));

	snprintf(seed, sizeof(seed), "%llu", (unsigned long long)random_of(random) % 1000000);
	char *const args[] = { self, (char *)"victim", seed, NULL };
	pid_t pid = stage_spawn(s, t, args);
	usleep(delay_us);
	note_state(tally, t, pid);
	int status = 0;
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	uint64_t begin = now_ns(), took;
	if (!WIFSIGNALED(status))
		give_up("a victim ended by itself: status 0x%x", (unsigned)status);
	do {
		usleep(200);
		took = now_ns() - begin;
	} while (!is_all_back(s, t, pid) && took < 20 * BACK_WITHIN_NS);
	if (took > tally->longest_ns)
		tally->longest_ns = took;
	tally->late += took > BACK_WITHIN_NS;
}

static pid_t start_survivor(struct stage *s, struct stage_tenant *t, char *self, int fd,
			    const char *number)
{
	char fd_text[16];

	snprintf(fd_text, sizeof(fd_text), "%d", fd);
	char *const args[] = { self, (char *)"survivor", fd_text, (char *)(uintptr_t)number, NULL };
	return stage_spawn(s, t, args);
}

static int be_survivor(char **argv)
{
	static const struct load_options options = { .kernel_us = 1000, .batch = 64 };
	struct load_figures *board = open_board(argv[2], SURVIVORS * sizeof(*board));

	return load_run(&board[atoi(argv[3])], &options);
}

int main(int argc, char **argv)
{
	static const double promised[SURVIVORS] = { 40, 20 };
	static struct stage stage;
	struct stage_tenant *survivor[SURVIVORS], *victim[VICTIM_TENANTS];
	pid_t pids[SURVIVORS];
	uint64_t busy_ns[SURVIVORS], random = 4711;
	double got[SURVIVORS];
	struct tally tally = { 0 };
	int fd;

	if (argc == 4 && !strcmp(argv[1], "survivor"))
		return be_survivor(argv);
	if (argc == 3 && !strcmp(argv[1], "victim"))
		be_victim(argv);
	unsigned kills = argc == 3 && !strcmp(argv[1], "--kills") ? (unsigned)atoi(argv[2]) : 1000;

	stage_start(&stage, "memory = 16 GiB\ncontext = 64 MiB\n", "");
	struct load_figures *board = shared_board(SURVIVORS * sizeof(*board), &fd);
	survivor[0] = stage_add_tenant(&stage, "survivor40", GIB, promised[0], 0);
	survivor[1] = stage_add_tenant(&stage, "survivor20", GIB, promised[1], 0);
	for (unsigned i = 0; i < VICTIM_TENANTS; i++) {
		char name[16];
		snprintf(name, sizeof(name), "victim%u", i);
		victim[i] = stage_add_tenant(&stage, name, GIB, 13, 0);
		stage_watch(victim[i]);
	}
	pids[0] = start_survivor(&stage, survivor[0], argv[0], fd, "0");
	pids[1] = start_survivor(&stage, survivor[1], argv[0], fd, "1");
	while (!board[0].runs || !board[1].runs)
		sleep_ms(5);
	sleep_ms(1000);
	uint64_t begin = now_ns(), still_ns = stillness_sum_ns();
	for (unsigned i = 0; i < SURVIVORS; i++) {
		busy_ns[i] = stage_card_busy_ns(&stage, pids[i]);
		atomic_store(&board[i].longest_ns, 0);
	}
	for (unsigned i = 0; i < kills; i++)
		kill_one(&stage, victim[random_of(&random) % VICTIM_TENANTS], &random, argv[0],
			 &tally);
	double elapsed_ns = (double)(now_ns() - begin);
	double still_pct = (double)(stillness_sum_ns() - still_ns) / elapsed_ns * 100;
	printf("%u killed in %.1f s: %u before they had a slot, %u with an empty one, %u with "
	       "memory; "
	       "%u with work under way, %u under a lease\n",
	       tally.kills, elapsed_ns / 1e9, tally.unregistered, tally.empty, tally.with_memory,
	       tally.busy, tally.leased);
	bar_time("kill_storm.back", tally.longest_ns, 1000000000ULL,
		 "slot, memory and lease back within %.1f ms of the end",
		 (double)tally.longest_ns / 1e6);
	bar("kill_storm.late", tally.late <= tally.kills / 200, "%u of %u later than 100 ms",
	    tally.late, tally.kills);
	for (unsigned i = 0; i < SURVIVORS; i++) {
		got[i] = (double)(stage_card_busy_ns(&stage, pids[i]) - busy_ns[i]) / elapsed_ns *
			 100;
		printf("%s's longest launch: %.1f ms\n", survivor[i]->name,
		       (double)board[i].longest_ns / 1e6);
	}
	bar_shares("kill_storm.share", SURVIVORS, (const struct stage_tenant *const *)survivor,
		   promised, got, still_pct);
	for (unsigned i = 0; i < SURVIVORS; i++)
		kill_and_wait(pids[i]);
	sleep_ms(100);
	uint64_t card = stage_card_used(&stage, 0);
	bar("kill_storm.zero", card == 0, "%llu bytes left on the card", (unsigned long long)card);
	stage_stop(&stage);
	return bar_status();
}
