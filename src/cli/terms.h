/*
 * A tenant's terms (memory, share of a GPU, behaviour when memory is full, and so on) as command-line options: rows, checks,
 * and members of requests. The options struct of a command with terms has a member `terms`.
 */
#pragma once

#include <jansson.h>

#include "base/parse.h"
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

/*
 * Values of the parameter `or_else` below. TERMS_MADE is for commands that make a tenant: their help shows defaults.
 * TERMS_CHANGED is for commands that change a tenant: their help does not.
 */
#define TERMS_MADE(text) "\n(default: " text ")"
#define TERMS_CHANGED(text) ""

#define TERMS_SHARE_ROWS(type, or_else) \
	TERM(type, "--memory", "SIZE", option_size, memory, \
	     .help = "quota of GPU memory, on each of its GPUs, such as\n4GiB" or_else( \
		     "what is not promised to other tenants")), \
		TERM(type, "--cores", "PERCENT", option_percent, cores, \
		     .help = "guaranteed percent of each GPU's time, such as 30" or_else( \
			     "no guarantee; a fair part of the time that\n" \
			     "guarantees leave")), \
		TERM(type, "--cores-limit", "PERCENT", option_percent, cores_limit, \
		     .help = "percent it may reach while others leave time unused" or_else( \
			     "as --cores; 100 without --cores")), \
		TERM(type, "--elastic", "on|off", option_choice, elastic, .offered = "on off", \
		     .help = "on: with --cores and no --cores-limit, it may also\n" \
			     "use the time that others leave unused" or_else( \
				     "the daemon's setting elastic, which is off")), \
		TERM(type, "--priority", "N", option_int, priority, .min = -PRIORITY_MOST, \
		     .max = PRIORITY_MOST, \
		     .help = "-100 to 100. It interrupts tenants of lower priority,\n" \
			     "for at most its --cores, or without --cores for what\n" \
			     "guarantees leave, at most 20 %" or_else("0"))
#define TERMS_VIOLATION_ROW(type, or_else) \
	TERM(type, "--on-violation", "ACTION", option_choice, on_violation, \
	     .offered = "report freeze end", \
	     .help = "what to do with a process of the tenant that bypasses\n" \
		     "the allot library: report, freeze or end it. The\n" \
		     "daemon's setting may be stricter" or_else("report"))
#define TERMS_PLACE_ROWS(type) \
	TERM(type, "--sharing", "time|space", option_sharing, sharing, .offered = "time space", \
	     .help = "With time, it takes turns on the GPU with all others.\n" \
		     "With space, it runs at the same time as the others of\n" \
		     "its group, by NVIDIA's MPS\n" \
		     "(default: the daemon's setting sharing, which is time)"), \
		TERM(type, "--group", "NAME", option_name, group, \
		     .help = "with --sharing space: the group it joins. A fault in\n" \
			     "one member can end the GPU work of all members\n" \
			     "(default: all tenants of this user on that GPU)"), \
		TERM(type, "--on-full", "fail|wait|swap", option_choice, on_full, \
		     .offered = "fail wait swap", \
		     .help = "what to do when GPU memory is short. With fail,\n" \
			     "--memory is reserved at the start, or the tenant is\n" \
			     "refused. With wait, its first allocation waits until\n" \
			     "--memory is free. With swap, such tenants take turns\n" \
			     "on the GPU, and their memory moves to host memory and\n" \
			     "back (default: fail)")

/* Returns -EINVAL if two terms conflict, or one needs another that is not set (--on-full wait needs --memory). */
int terms_check(const struct terms *terms, struct error *err);
/* Checks a change of a tenant, which keeps all terms that are not set. So a term may be set without another that it needs. */
int terms_check_change(const struct terms *terms, struct error *err);
bool terms_have_devices(const struct terms *terms);
/* Selects --gpu. Without it, *ret has one NULL: the daemon chooses. *ret points into *ret_hello, which the caller frees. */
int terms_select(const struct terms *terms, struct client *client, json_t **ret_hello,
		 struct selection *ret, struct error *err);
/* Makes a request's "devices". If `selection` is NULL, the daemon chooses a GPU. */
json_t *terms_make_devices(const struct terms *terms, const struct selection *selection);
/* Adds the terms that are not part of "devices" to a request's body. */
void terms_add(const struct terms *terms, json_t *body);
