/*
 * Settings under the names that gpu-manager's flags and HAMi's device plugin have for them, so that what a node
 * was set up with can be handed to allotd: each is taken for a setting of ours, or refused with the reason.
 *
 *     gpu-manager: github.com/tkestack/gpu-manager, cmd/manager/options
 *     HAMi:        its device plugin's configuration, as deviceSplitCount
 *
 * A name may be written with '-' or '_'. Pure.
 */
#ifndef ALLOT_DAEMON_CONFIG_CONFIG_FOREIGN_H
#define ALLOT_DAEMON_CONFIG_CONFIG_FOREIGN_H

#include <stdio.h>

#include "daemon/config/config.h"

/*
 * 0: it was taken. -ENOENT: nobody's name. -EINVAL: refused, or a value that it can't have, with the reason;
 * *config is unchanged then.
 */
int config_foreign_set(struct config *config, const char *key, const char *value, struct error *err);

/* The names, for a parser of command lines; NULL behind the last. */
const char *config_foreign_name(unsigned index);

/* One line a name: what it is here, or why not. */
void config_foreign_print_help(FILE *out);

#endif
