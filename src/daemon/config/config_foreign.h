/*
 * Settings under the names that gpu-manager's flags and HAMi's device plugin have for them, so that what a node
 * was set up with can be handed to allotd: each is taken for a setting of ours, or refused with the reason.
 *
 *     gpu-manager: github.com/tkestack/gpu-manager, cmd/manager/options
 *     HAMi:        its device plugin's configuration, as deviceSplitCount
 *
 * A name may be written with '-' or '_'. Pure.
 */
#pragma once

#include "daemon/config/config.h"

extern const struct settings_alias config_aliases[];
