/*
 * What may be written next on a command line of allot: made from the tables of commands and options, for the
 * shells' completion (deploy/completion). Pure.
 */
#pragma once

#include "cli/command.h"

/* What may stand there beside the words that were offered. */
enum completion_want {
	COMPLETION_NOTHING,
	COMPLETION_TENANT,
	COMPLETION_GPU,
	COMPLETION_BENCH,
	COMPLETION_FILE,
	COMPLETION_DIRECTORY,
	COMPLETION_COMMAND, /* of the shell: with its own arguments */
};

struct completion {
	enum completion_want want;
	int command_at; /* COMPLETION_COMMAND: the word that it begins with */
};

/* `word` fits what is written of it so far; `help` is one line, or NULL. Both end with the call. */
typedef void completion_offer(void *data, const char *word, const char *help);

/*
 * words[0..count) is what stands after "allot", at least one; the last is the one to be completed, "" when
 * nothing is written of it yet. bash makes three words of "--elastic=on"; that is understood. `commands`
 * ends with NULL.
 */
struct completion completion_find(const struct command *const *commands, int count,
				  char *const *words, completion_offer *offer, void *data);
