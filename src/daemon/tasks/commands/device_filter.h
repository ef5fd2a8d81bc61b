/*
 * A program in the kernel that decides which processes of a cgroup may open NVIDIA's device files, by the cgroup that each
 * process is in. Sources: bpf(2) and linux/bpf.h (BPF_PROG_TYPE_CGROUP_DEVICE, Linux 4.15; bpf_get_current_cgroup_id(), 4.18);
 * the kernel's Documentation/admin-guide/devices.txt (major 195). A cgroup's id is the inode number of its directory.
 *
 * The filter stays if this process ends without device_filter_close(): cgroups and users that were allowed before stay allowed,
 * and no others. Files that are open already stay open. Root's processes may always open the files. Not thread safe.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct device_filter;

/*
 * Makes a filter for the cgroup version 2 directory `dir` and everything below it, by which only root may open the files.
 * Needs CAP_SYS_ADMIN, or CAP_BPF and CAP_NET_ADMIN.
 */
int device_filter_open(const char *dir, struct device_filter **ret, struct error *err);
/* Puts the filter into force, in place of one that an earlier process left at `dir`. */
int device_filter_attach(struct device_filter *filter, struct error *err);
/* Removes the filter. NULL is allowed; returns NULL. */
struct device_filter *device_filter_close(struct device_filter *filter);
/* Removes the filter that an earlier process left at `dir`, if there is one. */
void device_filter_remove_left(const char *dir);

/* Processes in exactly this cgroup, not below it, may open the files. */
int device_filter_allow_cgroup(struct device_filter *filter, uint64_t id);
void device_filter_forget_cgroup(struct device_filter *filter, uint64_t id);
int device_filter_allow_user(struct device_filter *filter, uid_t uid);
