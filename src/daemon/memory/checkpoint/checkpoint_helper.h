/*
 * The helper: a process that makes the driver's checkpoint calls for the processes of one tenant or container. It carries out
 * one order at a time, and stays while those processes are off the GPU. It is allotd's program, executed with HELPER_OPTION:
 * the daemon itself need not load libcuda, and a call that hangs can be ended by a kill.
 *
 *  daemon: struct helper_order      over a SOCK_SEQPACKET socket, descriptor HELPER_FD
 *  helper: struct helper_answer     one for each order
 *
 * When the daemon closes its end of the socket or dies, the helper brings all its processes back as soon as their GPUs have
 * room, and ends. So no process stays off the GPU for ever. The helper's state is also in a file (helper_file.h). A later
 * helper, started with HELPER_RECOVER or by the next daemon's order, takes the processes over from the earlier helper, or from
 * the file if both daemon and helper were killed.
 *
 * If a step fails, the earlier steps are undone: either all processes have left the GPU, or none. If undoing fails too, the
 * answer is HELPER_STUCK.
 */
#pragma once

#include "daemon/memory/checkpoint/helper_protocol.h"

/* Arguments: HELPER_OPTION, paths of libcuda, NVML and the helper's file; HELPER_RECOVER only to bring processes back. */
int checkpoint_helper_main(int argc, char **argv);
