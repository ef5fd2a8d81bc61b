/* How the daemon starts a helper (checkpoint_helper.h), and the messages between both: one order at a time, an answer to each. */
#pragma once

#include <stdint.h>

#define HELPER_OPTION "--checkpoint-keeper"
#define HELPER_RECOVER "recover"
#define HELPER_FD 3
#define HELPER_TEXT_MAX 320
#define HELPER_MAX_PROCESSES 1024
#define HELPER_MAX_CARDS 64

struct helper_process {
	uint64_t start_time; /* with the pid, names it for good */
	int32_t pid;
};

struct helper_order {
	uint32_t goal; /* enum checkpoint_goal */
	uint32_t lock_ms;
	uint32_t room_ms; /* to IN: room is waited for so long */
	uint32_t process_count;
	uint64_t bytes[HELPER_MAX_CARDS]; /* what they take of each card, by NVML's numbers */
	struct helper_process process[HELPER_MAX_PROCESSES];
};

enum helper_result {
	HELPER_DONE,
	HELPER_NOT,   /* it could not be done, and all is as it was before */
	HELPER_STUCK, /* neither: some are in one place, some in the other */
};

struct helper_answer {
	uint32_t result; /* enum helper_result */
	char text[HELPER_TEXT_MAX];
};
