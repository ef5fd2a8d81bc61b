/*
 * A tenant's terms, as options of the commands that make one or change one: the row of each, what is wrong with them together,
 * and their members in the daemon's requests (docs/reference/protocol.md). The options of a command have them as `terms`.
 */
#ifndef ALLOT_CLI_TERMS_H
#define ALLOT_CLI_TERMS_H

#include <jansson.h>

#include "cli/options.h"
#include "cli/selection.h"

struct client;

struct terms {
	struct option_devices gpu;
	struct option_size memory, reserve, host_memory, swap_arena;
	struct option_percent cores, cores_limit;
	struct option_int priority;
	struct option_duration wait_timeout;
	const char *elastic, *on_violation, *on_full, *sharing, *group;
};

option_parser option_sharing; /* const char *, into argv */

#define TERM(type, name, argument, parse, field, ...) \
	OPTION(name, OPTION_VALUE_REQUIRED, argument, parse, type, terms.field, __VA_ARGS__)

/* `or_else` makes the default's line of its text: one of these two. */
#define TERMS_MADE(text) "\n(default: " text ")"
#define TERMS_CHANGED(text) ""

/* Those that may be changed later. */
#define TERMS_SHARE_ROWS(type, or_else) \
	TERM(type, "--memory", "SIZE", option_size, memory, \
	     .help = "GPU memory it may hold on each GPU, such as 4GiB" or_else( \
		     "what is not promised to others")), \
		TERM(type, "--cores", "PERCENT", option_percent, cores, \
		     .help = "share of GPU time that is guaranteed, such as 30" or_else( \
			     "no guarantee, a fair part of what is left")), \
		TERM(type, "--cores-limit", "PERCENT", option_percent, cores_limit, \
		     .help = "share it may reach when others leave time unused" or_else( \
			     "--cores, or 100 without it")), \
		TERM(type, "--elastic", "on|off", option_choice, elastic, .offered = "on off", \
		     .help = "with --cores alone: may it use what others leave\n" \
			     "unused, as that changes over seconds, on all of its\n" \
			     "GPUs" or_else("the daemon's setting, off unless changed")), \
		TERM(type, "--priority", "N", option_int, priority, .min = -100, .max = 100, \
		     .help = "-100 to 100; higher may interrupt lower, within its\n" \
			     "--cores (without: 20 % of what is left)" or_else("0"))
#define TERMS_VIOLATION_ROW(type, or_else) \
	TERM(type, "--on-violation", "WHAT", option_choice, on_violation, \
	     .offered = "report freeze end", \
	     .help = "what is done with a process of it that gets round the\n" \
		     "library: report, freeze or end; the daemon's setting\n" \
		     "may be stricter" or_else("report"))
/* Those that are for as long as it lives. */
#define TERMS_PLACE_ROWS(type) \
	TERM(type, "--sharing", "time|space", option_sharing, sharing, .offered = "time space", \
	     .help = "how it shares the GPU: in turns with all others\n" \
		     "(time), or at the same time as others of its group,\n" \
		     "by NVIDIA's MPS (space)\n" \
		     "(default: the daemon's setting, time unless changed)"), \
		TERM(type, "--group", "NAME", option_name, group, \
		     .help = "with --sharing space: who it shares with, and whose\n" \
			     "faults it puts up with (default: all of this user)"), \
		TERM(type, "--on-full", "fail|wait|swap", option_choice, on_full, \
		     .offered = "fail wait swap", \
		     .help = "when the card is full: its --memory is promised to\n" \
			     "it from the start, or this is refused (fail, the\n" \
			     "default); or the first allocation waits until all\n" \
			     "of it is free, least use of the GPU first (wait);\n" \
			     "or such tenants take turns on the card, and their\n" \
			     "memory moves to host memory and back (swap)")

/* -EINVAL: two of them do not go together. */
int terms_check(const struct terms *terms, struct error *err);
/* Whether there is one that is each GPU's. */
bool terms_have_devices(const struct terms *terms);
/* The GPUs that --gpu means; without it one that the daemon chooses, whose device is NULL. *ret_hello keeps them. */
int terms_select(const struct terms *terms, struct client *client, json_t **ret_hello,
		 struct selection *ret, struct error *err);
/* A request's "devices"; `selection` NULL: the daemon chooses one. */
json_t *terms_make_devices(const struct terms *terms, const struct selection *selection);
/* The other members. */
void terms_add(const struct terms *terms, json_t *body);

#endif
