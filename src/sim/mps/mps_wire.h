/*
 * The protocol between the simulated nvidia-cuda-mps-control, its servers and its clients. A client connects to "control" in
 * the pipe directory and sends MPS_CLIENT_HELLO. The control daemon passes the connection to the server of the client's user,
 * where it stays until the server ends.
 */
#pragma once

#define MPS_SOCKET "control"
#define MPS_PID_FILE "nvidia-cuda-mps-control.pid"
#define MPS_CLIENT_HELLO "client\n" /* any other text is a command of the tool */

/* The one-byte answer to a client: accepted, the server has MPS_CLIENTS_MAX clients, or there is no server now. */
#define MPS_TAKEN 't'
#define MPS_FULL 'f'
#define MPS_AWAY 'a'

#define MPS_CLIENTS_MAX 60 /* per server */
#define MPS_SERVERS_MAX 16 /* per control daemon */
