/* The simulated CUDA driver as a client of MPS. */
#pragma once

/*
 * Connects to the MPS control daemon of CUDA_MPS_PIPE_DIRECTORY. Returns 1 if a server took this
 * process; when that server ends, a new thread calls gone(data). Returns 0 if the variable is not
 * set or no daemon answers; the program then goes on without MPS, as with the real driver. Returns
 * -EUSERS if the server has no room for a client, -ECONNREFUSED if the server has ended and there
 * is no new one yet.
 */
int mps_attach(void (*gone)(void *data), void *data);

/* Drops the connection in a child of fork(): the server serves only the parent. */
void mps_forget(void);
