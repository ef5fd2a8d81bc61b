#include "daemon/state/join/join.h"

#include <errno.h>

#include "daemon/memory/swap/arena.h"
#include "daemon/space/space_groups.h"
#include "daemon/state/join/adopt.h"
#include "daemon/util/procfs.h"

/* Returns the slot of a process that registers again with this daemon, for example because it missed the reply; else NULL. */
static struct process *find_again(struct tenant *tenant, int pid, uint64_t previous_epoch)
{
	if (previous_epoch == 0 ||
	    (previous_epoch != tenant->node->epoch && adopt_is_expected(tenant, pid)))
		return NULL;
	return tenant_process_of(tenant, pid);
}

int join_tenant(struct tenant *tenant, struct peer *peer, uint64_t previous_epoch,
		struct process **ret, bool *ret_is_new, struct error *err)
{
	uint64_t start_time;
	int pid = peer->pid;

	if (tenant->corrupt)
		return error_set(err, EBADMSG,
				 "the tenant's report in shared memory is corrupt, so no more "
				 "processes may join the tenant: start a new tenant");
	int r = procfs_start_time(pid, &start_time);
	if (r == -ESRCH || !peer_is_alive(peer))
		return error_set(err, ESRCH, "process %d has ended", pid);
	if (r < 0)
		return error_set_errno(err, -r, "can't read /proc/%d/stat", pid);
	struct process *again = find_again(tenant, pid, previous_epoch);
	if (again) {
		*ret = again;
		*ret_is_new = false;
		return 0;
	}
	/* A process of an earlier daemon may return even to a retired tenant, which ends with its last process. */
	r = adopt_is_expected(tenant, pid) && previous_epoch != 0
		    ? 0
		    : tenant_check_not_retired(tenant, err);
	if (r >= 0 && previous_epoch == 0)
		r = space_check_process(tenant, err);
	if (r < 0)
		return r;
	/* This program registers for the first time. So the slots of its pid are of a program that the process ran before. */
	if (previous_epoch == 0)
		tenant_remove_pid(tenant, pid);
	r = tenant_add_process(tenant, pid, start_time, &peer->pidfd, ret, err);
	if (r < 0)
		return r;
	adopt_registered(tenant, pid, (*ret)->slot, previous_epoch != 0);
	if (tenant->arena)
		arena_back(tenant->arena, pid, tenant->terms.name);
	*ret_is_new = true;
	return 0;
}
