/* For a forked child that continues without exec. The parent may have threads, so this uses system calls only. */
#pragma once

/*
 * Closes every descriptor but `keep`, so that the child holds none of the parent's connections and locks. May be called right
 * after fork().
 */
void child_close_others(int keep);
