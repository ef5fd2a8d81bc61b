/*
 * What a fork of a program with threads does that goes on without exec. It has system calls alone.
 */
#pragma once

/*
 * Closes every descriptor but `keep`: those of the parent would stay open for its peers, and its locks be held. May be
 * called right after fork().
 */
void child_close_others(int keep);
