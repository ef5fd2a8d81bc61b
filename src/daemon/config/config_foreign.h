/*
 * Accepts a node's existing configuration of gpu-manager or of HAMi's device plugin. A setting is translated to one of allot's,
 * is ignored if it has its only valid value (driver = nvidia), or is rejected with the reason.
 *
 *     gpu-manager: its flags; github.com/tkestack/gpu-manager, cmd/manager/options
 *     HAMi:        its device plugin's configuration, such as deviceSplitCount
 *
 * A name may be written with '-' or '_'. Pure.
 */
#pragma once

#include "daemon/config/config.h"

extern const struct settings_alias config_aliases[];
