/*
 * What a fork of a program with threads does that goes on without exec. It has system calls alone.
 */
#ifndef ALLOT_BASE_CHILD_H
#define ALLOT_BASE_CHILD_H

/*
 * Closes every descriptor but `keep`: those of the parent would stay open for its peers, and its locks be held. May be
 * called right after fork().
 */
void child_close_others(int keep);

#endif
