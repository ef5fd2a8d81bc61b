/*
 * Flags of HAMi's scheduler and of the webhook in it, so that what they are started with can be handed to allot-scheduler: each
 * is taken for a setting of ours, taken as what is done anyway, or refused with the reason. Also its names for resources and
 * defaults, in the configuration of devices.
 *
 *     github.com/Project-HAMi/HAMi, cmd/scheduler/main.go, pkg/scheduler/config/config.go, pkg/device; k8s.io/klog/v2
 *
 * A name may be written with '-' or '_'. Pure.
 */
#pragma once

#include "base/settings/settings.h"

extern const struct settings_alias config_aliases[];
