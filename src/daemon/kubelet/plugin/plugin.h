/*
 * The kubelet's device plugin (v1beta1): shows each card as equal slices, with gpu-manager's vocabulary as units of
 * memory too, tells of their health, and gives containers what they need to be a tenant of their share. Of the
 * system daemon alone. Main thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/config/config.h"
#include "daemon/state/node/node.h"

struct plugin;

/* The settings as far as no line shows it by itself: -EINVAL, with what would be right. Pure. */
int plugin_check(const struct config *config, struct error *err);

/* *ret: NULL where the setting kube_plugin is off. Cards, census and claims must be open. */
int plugin_start(struct node *node, struct plugin **ret, struct error *err);
/* Takes the socket away; what was allocated stays. NULL is fine; returns NULL. */
struct plugin *plugin_stop(struct plugin *plugin);

struct plugin_figures {
	bool is_registered; /* all of its resources are */
	/* See registrar.h: of all resources, the time of the slowest. */
	uint64_t registrations, register_failures, register_ns;
	uint64_t watchers, slices, healthy_slices;                  /* of all resources */
	uint64_t disagreements, disagreements_ever, reattributions; /* reconcile.h */
	uint64_t allocations, refused, allocate_ns; /* of the calls' time, the sum */
};

/* False: there is none. */
bool plugin_figures(struct plugin *plugin, struct plugin_figures *ret);
