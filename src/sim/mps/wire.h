/*
 * Between the simulated nvidia-cuda-mps-control, its servers and its clients. A client connects to the pipe directory's
 * "control", says who it is, and is handed on to the server of its user: the connection is from then on the server's, and
 * ends with it. So a server that is killed is a closed socket, as anywhere in the simulation.
 */
#pragma once

#define MPS_SOCKET "control"
#define MPS_PID_FILE "nvidia-cuda-mps-control.pid"
#define MPS_CLIENT_HELLO "client\n" /* else it is a command of the tool's */

/* What a client is told, a byte. */
#define MPS_TAKEN 't'
#define MPS_FULL 'f'
#define MPS_AWAY 'a'

#define MPS_CLIENTS_MAX 60 /* of a server */
#define MPS_SERVERS_MAX 16 /* of a control daemon */
