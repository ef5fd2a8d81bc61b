/*
 * The places of the daemon's files (docs/reference/protocol.md, "Files"), and the check whether a directory can be trusted.
 *
 *     <base>/gpu         run directory for real GPUs: allotd.sock, allotd.lock, tenants/
 *     <base>/sim-<name>  run directory for simulated GPUs: the same, and sim.sock
 *
 * The system daemon's base is /run/allot. A user's own base is $ALLOT_RUN_DIR if set, else $XDG_RUNTIME_DIR/allot, else
 * /tmp/allot-<uid>. A user's base belongs to the user, and nobody else may write to it.
 *
 * Functions return 0 or -errno. Thread safe as long as the environment does not change meanwhile.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define PATHS_MAX 4096
#define PATHS_HARDWARE_MAX 64
#define PATHS_SYSTEM_BASE "/run/allot"

/*
 * Makes the last part of a run directory's path from `spec`. NULL, for real GPUs, gives "gpu". A word of letters, digits, '-'
 * and '_', such as h200x2, gives "sim-h200x2", even if no such simulated GPU exists. Any other `spec` is the path of a file
 * that describes a simulated GPU, and gives "sim-<start of the file's name>-<hash of its real path>". -EINVAL if spec is empty,
 * -ENAMETOOLONG for a word above 32 bytes, -ENOENT if the file does not exist.
 */
int paths_hardware(const char *spec, char ret_name[PATHS_HARDWARE_MAX], struct error *err);

/* The system daemon's run directory. `hardware` is from paths_hardware(). Creates nothing. */
int paths_system_run_dir(const char *hardware, char ret_dir[PATHS_MAX], struct error *err);

/* True if ALLOT_RUN_DIR sets the base; then the system daemon is not used. */
bool paths_base_is_overridden(void);

/* The caller's own run directory. `hardware` is from paths_hardware(). paths_make_private() creates the directory. */
int paths_private_run_dir(const char *hardware, char ret_dir[PATHS_MAX], struct error *err);

/* Returns -EILSEQ if the path cannot be written in JSON, because it is not UTF-8 or has control characters. */
int paths_check_text(const char *dir, struct error *err);

/* Creates a run directory and its base (0700), and calls paths_check_private() on both. The base's parent must exist. */
int paths_make_private(const char *run_dir, struct error *err);

/* Creates a directory of root that everybody may read (0755), and its parents. -EPERM if others own or may write to it. */
int paths_make_system(const char *dir, struct error *err);

/*
 * Returns 0 if dir is a directory (no symlink), belongs to the caller's effective uid, and is not writable for group or others.
 * -ENOENT if it does not exist; -EPERM or -ENOTDIR otherwise.
 */
int paths_check_private(const char *dir, struct error *err);

/* Makes the path DIR/LEAF. -ENAMETOOLONG if the path with its NUL needs more than `size` bytes. */
int paths_join(const char *dir, const char *leaf, char *ret_path, size_t size, struct error *err);
