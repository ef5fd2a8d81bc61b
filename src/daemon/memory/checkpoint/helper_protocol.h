/* How the daemon starts a helper (checkpoint_helper.h), and their messages: one order at a time, with one answer each. */
#pragma once

#include <stdint.h>

#define HELPER_OPTION "--checkpoint-keeper"
#define HELPER_RECOVER "recover"
#define HELPER_FD 3
#define HELPER_TEXT_MAX 320
#define HELPER_MAX_PROCESSES 1024
#define HELPER_MAX_CARDS 64

struct helper_process {
	uint64_t start_time; /* with the pid, identifies the process */
	int32_t pid;
};

struct helper_order {
	uint32_t goal;
	uint32_t lock_ms; /* how long locking a process may wait for the end of its GPU work */
	uint32_t room_ms; /* for goal IN: how long to wait for room on the GPUs */
	uint32_t process_count;
	/* Memory that the processes need on each GPU, by NVML's index. */
	uint64_t bytes[HELPER_MAX_CARDS];
	struct helper_process process[HELPER_MAX_PROCESSES];
};

enum helper_result {
	HELPER_DONE,
	HELPER_NOT, /* not possible; all processes are where an order of the other goal leaves them */
	HELPER_STUCK, /* some processes are off the GPU and some are not */
	HELPER_UNTRIED, /* not possible; the helper does not know where the processes are, and moved none */
};

struct helper_answer {
	uint32_t result;
	char text[HELPER_TEXT_MAX];
};
