/* How the daemon starts a keeper (keeper.h), and the messages between both: one order at a time, an answer to each. */
#ifndef ALLOT_DAEMON_MEMORY_CHECKPOINT_KEEPER_PROTOCOL_H
#define ALLOT_DAEMON_MEMORY_CHECKPOINT_KEEPER_PROTOCOL_H

#include <stdint.h>

#define KEEPER_OPTION "--checkpoint-keeper"
#define KEEPER_RECOVER "recover"
#define KEEPER_FD 3
#define KEEPER_TEXT_MAX 320
#define KEEPER_MAX_PROCESSES 1024
#define KEEPER_MAX_CARDS 64

struct keeper_process {
	uint64_t start_time; /* with the pid, names it for good */
	int32_t pid;
};

struct keeper_order {
	uint32_t goal; /* enum checkpoint_goal */
	uint32_t lock_ms;
	uint32_t room_ms; /* to IN: room is waited for so long */
	uint32_t process_count;
	uint64_t bytes[KEEPER_MAX_CARDS]; /* what they take of each card, by NVML's numbers */
	struct keeper_process process[KEEPER_MAX_PROCESSES];
};

enum keeper_result {
	KEEPER_DONE,
	KEEPER_NOT,   /* it could not be done, and all is as it was before */
	KEEPER_STUCK, /* neither: some are in one place, some in the other */
};

struct keeper_answer {
	uint32_t result; /* enum keeper_result */
	char text[KEEPER_TEXT_MAX];
};

#endif
