/*
 * Finds tenants whose processes use more GPU time than the tenant was charged for (policy/safety/time_policy.h). A thread
 * reads the driver's samples of each card at moments that tenants can't predict; the main thread compares them with the
 * charges, and reports offenders (violations.h). The thread reads only while there are tenants.
 *
 * Known drivers (580) leave some busy processes out of the samples. And a tenant that only claims to work is charged for a part
 * of the work of others. So the charge of all tenants without a sample is subtracted from a tenant's samples, except where no
 * charge explains the card's busy time. Cards with tenants that run at the same time (space_groups.h) are left out: samples do
 * not tell such tenants apart.
 */
#pragma once

#include "base/error.h"

struct node;
struct tenant;
struct time_readings;

/* Starts the thread. The backend, cards and violations must be open. */
int time_readings_start(struct node *node, struct time_readings **ret, struct error *err);
/* Stops the thread after the NVML call in progress. NULL is allowed; returns NULL. */
struct time_readings *time_readings_stop(struct time_readings *readings);
/*
 * Handler of the event tenant_added (subsystem.h). Where violations have consequences, refuses a new tenant with -EPERM for half
 * a minute after a violation of a tenant of the same owner. Otherwise a program could begin anew in another tenant each time it is ended.
 */
int time_readings_tenant_added(struct tenant *tenant, bool is_new, struct error *err);
/* Handler of the event populated_changed (subsystem.h). */
void time_readings_populated_changed(struct node *node);
/* Call once a second while there are tenants. If a card is busy, wakes the thread, which sleeps while no card is busy. */
void time_readings_tick(struct node *node);
