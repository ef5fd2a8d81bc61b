/* A simulated MPS server: it holds its clients' connections, and so their fate. */
#pragma once

/* Serves until the control daemon is gone, or has shut the socket and no client is left. Its exit status. */
int mps_serve(int control_fd);

#define MPS_FAULT_OF_ALL 0 /* instead of a client's pid: see fault() */

/* Of the control daemon: gives a client's connection to the server. 0, or -errno. */
int mps_hand_on(int server_fd, int client_fd, int client_pid);

/* A line of the log, on stdout, as the real ones write it. */
void mps_log(const char *format, ...) __attribute__((format(printf, 1, 2)));
