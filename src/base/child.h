/* For a forked child that continues without exec. The parent may have threads, so this uses system calls only. */
#pragma once

/*
 * Closes every descriptor but `keep`. Otherwise the child would keep the parent's connections open and its locks held. May be
 * called right after fork().
 */
void child_close_others(int keep);
