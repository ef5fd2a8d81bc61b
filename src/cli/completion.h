/* Shell completion (deploy/completion): finds the words that can follow on a command line of allot. Pure. */
#pragma once

#include "cli/command.h"

enum completion_want {
	COMPLETION_NOTHING,
	COMPLETION_TENANT,
	COMPLETION_GPU,
	COMPLETION_BENCH,
	COMPLETION_FILE,
	COMPLETION_DIRECTORY,
	COMPLETION_COMMAND, /* a shell command with its own arguments */
};

struct completion {
	enum completion_want want;
	int command_at; /* for COMPLETION_COMMAND, the index of the command's first word */
};

/* Gets a word that begins with what the user typed. `help` is one line or NULL. Both are valid only during the call. */
typedef void completion_offer(void *data, const char *word, const char *help);

/*
 * Calls `offer` for each command, option or value that can follow. Returns what the caller must complete itself, such as a
 * file. words[0..count) are the words after "allot", at least one; the last is to be completed ("" if nothing is typed). bash
 * splits "--elastic=on" into three words, which count as one option. `commands` ends with NULL.
 */
struct completion completion_find(const struct command *const *commands, int count,
				  char *const *words, completion_offer *offer, void *data);
