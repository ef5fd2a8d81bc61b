/* The simulated CUDA driver as a client of MPS. */
#pragma once

/*
 * Connects to the MPS control daemon of CUDA_MPS_PIPE_DIRECTORY. 1: a server accepted this process, and a new thread calls
 * gone(data) when that server ends or drops the process. 0: there is no daemon; as with the real driver, the program runs
 * without MPS. -EUSERS: the server is full. -ECONNREFUSED: the server has ended, and no new one is ready.
 */
int mps_attach(void (*gone)(void *data), void *data);

/* Call in a child of fork(): the server serves only the parent. */
void mps_forget(void);
