/* The simulated CUDA driver as a client of MPS. */
#pragma once

/*
 * Connects to the MPS of CUDA_MPS_PIPE_DIRECTORY. 1: served from here on; when that server ends, gone(data) is called, in a
 * thread of its own. 0: the variable is not set, or nobody is there: as with the real driver the program goes on without.
 * -EUSERS: the server has all the clients that it takes. -ECONNREFUSED: it has ended, and there is no other one yet.
 */
int mps_attach(void (*gone)(void *data), void *data);

/* In a child of fork(): it is its parent that is served. */
void mps_forget(void);
