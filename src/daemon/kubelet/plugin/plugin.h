/*
 * The kubelet's device plugin (v1beta1): shows each card as equal slices (with gpu-manager's resources also as units of
 * memory), reports the cards' health, and makes each container a tenant with its share. A daemon with --private has no plugin.
 * Main thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/config/config.h"
#include "daemon/state/node/node.h"

struct plugin;

/* Checks the settings. Returns -EINVAL if one is invalid or two contradict each other; err says what would be right. Pure. */
int plugin_check(const struct config *config, struct error *err);

/* Starts the plugin. Leaves *ret as it is if the setting kube_plugin is off. Cards, census and claims must be open. */
int plugin_start(struct node *node, struct plugin **ret, struct error *err);
/* Removes the socket; claims stay. NULL is allowed; returns NULL. */
struct plugin *plugin_stop(struct plugin *plugin);

struct plugin_figures {
	bool is_registered; /* all resources are registered */
	/* totals over all resources (registrar.h); register_ns is the slowest resource's */
	uint64_t registrations, register_failures, register_ns;
	uint64_t watchers, slices, healthy_slices;                  /* totals over all resources */
	uint64_t disagreements, disagreements_ever, reattributions; /* see reconcile.h */
	/* allocate_ns: total time of the answered Allocate calls */
	uint64_t allocations, refused, allocate_ns;
};

/* Returns false if there is no plugin. */
bool plugin_figures(struct plugin *plugin, struct plugin_figures *ret);
