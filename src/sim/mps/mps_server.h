/* A simulated MPS server. It holds its clients' connections, which close when the server ends. */
#pragma once

/*
 * Serves until the control daemon is gone. If the daemon shuts down its end for writing, serves until no client is left or
 * nothing has happened for a second. Returns the exit status.
 */
int mps_serve(int control_fd);

/* Sent instead of a client's pid, this makes the server drop all its clients. */
#define MPS_FAULT_OF_ALL 0

/* For the control daemon: passes a client's connection to the server. Returns 0 or -errno. */
int mps_pass_client(int server_fd, int client_fd, int client_pid);

/* Writes a line to stdout, in the format of the real programs. */
void mps_log(const char *format, ...) __attribute__((format(printf, 1, 2)));
