/*
 * For a child process after fork(). The parent may have threads, so these functions make system calls only. If the kernel lacks
 * close_range(), they close only descriptors below 65536 and below the soft limit of RLIMIT_NOFILE.
 */
#pragma once

void child_close_from(int first);

/* Closes every descriptor but `keep`, so that the child holds none of the parent's connections and locks. */
void child_close_others(int keep);
