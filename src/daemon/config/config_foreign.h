/*
 * Settings under the names that gpu-manager's flags and HAMi's device plugin use, so that allotd
 * accepts the existing configuration of a node. Each name is mapped to one of our settings, or
 * rejected with the reason.
 *
 *     gpu-manager: github.com/tkestack/gpu-manager, cmd/manager/options
 *     HAMi:        its device plugin's configuration, such as deviceSplitCount
 *
 * A name may be written with '-' or '_'. Pure.
 */
#pragma once

#include "daemon/config/config.h"

extern const struct settings_alias config_aliases[];
