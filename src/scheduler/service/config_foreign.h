/*
 * Accepts the flags of HAMi's scheduler and webhook, so that their command line works here. A flag sets one of our settings, or
 * asks for what allot-scheduler always does, or is rejected with a reason. Keys of HAMi's device configuration are accepted
 * too. A name may be written with '-' or with '_'.
 *
 *     github.com/Project-HAMi/HAMi, cmd/scheduler/main.go, pkg/scheduler/config/config.go, pkg/device; k8s.io/klog/v2
 */
#pragma once

#include "base/settings/settings.h"

extern const struct settings_alias config_aliases[];
