/*
 * The keeper: a process that has the driver's checkpoint calls made for the processes of one tenant or
 * container, one order at a time, and stays while they are off the card. The daemon's program, run anew
 * (KEEPER_OPTION): libcuda is in it alone, and a call that hangs is ended by killing it.
 *
 *     daemon: struct keeper_order      over a SOCK_SEQPACKET socket, descriptor KEEPER_FD
 *     keeper: struct keeper_answer     one each
 *
 * Its end of the socket tells it of the daemon's end. Then, whatever was ordered, it brings all of them
 * back as soon as their cards have room, and ends: so nothing stays out for ever. What it keeps is also
 * in a file (keeper_file.h), so that a keeper that is run after it (with KEEPER_RECOVER, or by the next
 * daemon's order) takes over from it, or from what it left when both were killed.
 *
 * A step that fails takes back those before it: either all of the processes have left, or none.
 */
#ifndef ALLOT_DAEMON_MEMORY_CHECKPOINT_KEEPER_H
#define ALLOT_DAEMON_MEMORY_CHECKPOINT_KEEPER_H

#include "daemon/memory/checkpoint/keeper_protocol.h"

/*
 * The keeper's main(): KEEPER_OPTION, the path of libcuda, that of NVML, its file, and for one that only
 * takes over and brings back KEEPER_RECOVER. Returns the exit status.
 */
int keeper_main(int argc, char **argv);

#endif
