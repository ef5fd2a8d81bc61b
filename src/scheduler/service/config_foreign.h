/*
 * Flags of HAMi's scheduler and of the webhook in it, so that what they are started with can be handed to allot-scheduler: each
 * is taken for a setting of ours, taken as what is done anyway, or refused with the reason. Also its names for resources and
 * defaults, in the configuration of devices.
 *
 *     github.com/Project-HAMi/HAMi, cmd/scheduler/main.go, pkg/scheduler/config/config.go, pkg/device; k8s.io/klog/v2
 *
 * A name may be written with '-' or '_'. Pure.
 */
#ifndef ALLOT_SCHEDULER_SERVICE_CONFIG_FOREIGN_H
#define ALLOT_SCHEDULER_SERVICE_CONFIG_FOREIGN_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"

/*
 * `config`: a struct config. 0: it was taken. -ENOENT: nobody's name. -EINVAL, -ERANGE: refused, or a value that it can't
 * have, with the reason; *config is unchanged then.
 */
int config_foreign_set(void *config, const char *key, const char *value, struct error *err);

/* The names, for a parser of command lines; NULL behind the last. *ret_is_switch: one without a value means "true". */
const char *config_foreign_name(unsigned index, bool *ret_is_switch);

/* One line a name: what it is here, or why not. */
void config_foreign_print_help(FILE *out);

#endif
