/*
 * How the daemon starts a helper (checkpoint_helper.h), and the messages between them: the daemon
 * sends one order at a time, and the helper sends one answer to each.
 */
#pragma once

#include <stdint.h>

#define HELPER_OPTION "--checkpoint-keeper"
#define HELPER_RECOVER "recover"
#define HELPER_FD 3
#define HELPER_TEXT_MAX 320
#define HELPER_MAX_PROCESSES 1024
#define HELPER_MAX_CARDS 64

struct helper_process {
	uint64_t start_time; /* identifies the process together with the pid */
	int32_t pid;
};

struct helper_order {
	uint32_t goal; /* enum checkpoint_goal */
	uint32_t lock_ms;
	uint32_t room_ms; /* for goal IN: how long to wait for room on the cards */
	uint32_t process_count;
	/* the memory that the processes take of each card, by NVML's index */
	uint64_t bytes[HELPER_MAX_CARDS];
	struct helper_process process[HELPER_MAX_PROCESSES];
};

enum helper_result {
	HELPER_DONE,
	HELPER_NOT,   /* not possible; all processes are where they were before the order */
	HELPER_STUCK, /* some processes are off the card and some are not */
};

struct helper_answer {
	uint32_t result; /* enum helper_result */
	char text[HELPER_TEXT_MAX];
};
