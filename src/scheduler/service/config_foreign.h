/*
 * Flags of HAMi's scheduler and its webhook, so that the same command line can be used for allot-scheduler. Each flag sets
 * one of our settings, is accepted because it names what is always done, or is rejected with a reason. The keys for resources
 * and defaults in HAMi's device configuration are accepted too.
 *
 *     github.com/Project-HAMi/HAMi, cmd/scheduler/main.go, pkg/scheduler/config/config.go, pkg/device; k8s.io/klog/v2
 *
 * A name may be written with '-' or '_'. Pure.
 */
#pragma once

#include "base/settings/settings.h"

extern const struct settings_alias config_aliases[];
