/*
 * Small linear memory. The card gives no less than 2 MiB, so what is smaller the driver cuts from chunks of
 * that size, and a chunk is charged from its first piece to its last, however few are left. (From 2 MiB on
 * an allocation has its pages for itself, and no piece is cut from what it leaves of the last one.) Here
 * each chunk has the count of its pieces, found by address in two loads.
 *
 * Whether the driver has room in a chunk is not known before it is asked; so a whole chunk is reserved
 * ahead, and where it was not needed it stays a spare for the next piece: one for each device, given back
 * when it is not asked for, when other memory is short, and with the last chunk.
 *
 * Thread safe.
 */
#ifndef ALLOT_INTERPOSE_PIECE_H
#define ALLOT_INTERPOSE_PIECE_H

#include <stdbool.h>
#include <stdint.h>

#include "driver/cuda_abi.h"

#define PIECE_CHUNK (2ULL << 20)
#define PIECE_STEP 512ULL
#define PIECE_MAX \
	(PIECE_CHUNK - PIECE_STEP) /* bytes; these as measured on an H200 with driver 580 */

struct piece_chunk {
	/*
	 * How many pieces, and above that, of a chunk that has any, the device. One word, so that who
	 * takes the last piece knows whose it was.
	 */
	_Atomic uint32_t state;
	_Atomic uint64_t owner; /* the context that it dies with */
};

#define PIECE_DEVICE_SHIFT 24
#define PIECE_COUNT_MASK ((1U << PIECE_DEVICE_SHIFT) - 1)

/* How a chunk's charge was come by before the driver is asked for a piece. */
enum piece_charge { PIECE_RESERVED = 0, PIECE_SPARE };

/* Takes the spare of a device, which is charged: PIECE_SPARE. Else reserve PIECE_CHUNK: PIECE_RESERVED. */
enum piece_charge piece_take_spare(int device);

/* It is no spare any more: the charge is for something else. */
void piece_use_spare(int device);

/* The driver failed, and made no piece. */
void piece_failed(int device, enum piece_charge charge);

/* Gives the spare back, if there is one. */
void piece_drain(int device);

/* For the helper, now and then: gives back the spares that nobody took since the last time. */
void piece_rest(uint64_t now_ns);

/*
 * Counts a piece at `ptr`, and settles the charge: it becomes the chunk's, or is kept as a spare or given
 * back. False: an address that there is no table for, or no memory for one; not counted, not settled.
 */
bool piece_add(CUdeviceptr ptr, int device, enum piece_charge charge);

/* The chunk that has pieces and `ptr` lies in, or NULL. */
struct piece_chunk *piece_chunk_of(CUdeviceptr ptr);

/* One less, after the driver has freed it: with the last one the chunk's charge goes back. */
void piece_remove(struct piece_chunk *chunk);

/* The context is gone, and with it its chunks. */
void piece_context_gone(uint64_t owner);

/* Forgets everything, in a forked child. */
void piece_reset(void);

#endif
