/* For a child process after fork() without exec. The parent may have threads, so these functions make system calls only. */
#pragma once

/*
 * Closes every descriptor but `keep`, so that the child holds none of the parent's connections and locks. May be called right
 * after fork().
 */
void child_close_others(int keep);
