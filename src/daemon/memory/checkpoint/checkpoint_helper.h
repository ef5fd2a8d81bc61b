/*
 * The helper: a process that has the driver's checkpoint calls made for the processes of one tenant or
 * container, one order at a time, and stays while they are off the card. The daemon's program, run anew
 * (HELPER_OPTION): libcuda is in it alone, and a call that hangs is ended by killing it.
 *
 *     daemon: struct helper_order      over a SOCK_SEQPACKET socket, descriptor HELPER_FD
 *     helper: struct helper_answer     one each
 *
 * Its end of the socket tells it of the daemon's end. Then, whatever was ordered, it brings all of them
 * back as soon as their cards have room, and ends: so nothing stays out for ever. What it keeps is also
 * in a file (helper_file.h), so that a helper that is run after it (with HELPER_RECOVER, or by the next
 * daemon's order) takes over from it, or from what it left when both were killed.
 *
 * A step that fails takes back those before it: either all of the processes have left, or none.
 */
#pragma once

#include "daemon/memory/checkpoint/helper_protocol.h"

/*
 * The helper's main(): HELPER_OPTION, the path of libcuda, that of NVML, its file, and for one that only
 * takes over and brings back HELPER_RECOVER. Returns the exit status.
 */
int checkpoint_helper_main(int argc, char **argv);
