/* The simulated CUDA driver as a client of MPS. */
#pragma once

/*
 * Connects to the MPS control daemon of CUDA_MPS_PIPE_DIRECTORY. Returns 1 if a server accepted this process; a new thread
 * calls gone(data) when that server ends or drops this process. Returns 0 if there is no daemon; the program then goes on
 * without MPS, as with the real driver. Returns -EUSERS if the server is full, -ECONNREFUSED if the server has ended and there
 * is no new one yet.
 */
int mps_attach(void (*gone)(void *data), void *data);

/* Call in a child of fork(): the server serves only the parent. */
void mps_forget(void);
