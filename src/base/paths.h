/*
 * Where the daemon's files are (docs/reference/protocol.md, "Files"), and whether a directory may be trusted.
 *
 *     base                   run directory                 in it
 *     /run/allot             <base>/gpu                    allotd.sock, allotd.lock, tenants/
 *     $XDG_RUNTIME_DIR/allot <base>/sim-<name>             the same, and sim.sock
 *     /tmp/allot-<uid>
 *
 * The system daemon's base is /run/allot. A user's own is $ALLOT_RUN_DIR where that is set, else the
 * second or third line; it belongs to the user and nobody else may write to it.
 *
 * Each function returns 0 and writes its ret_ output, or returns -errno with one line in err (NULL: not
 * wanted).
 * Thread safe as long as nobody changes the environment meanwhile.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define PATHS_MAX 4096
#define PATHS_HARDWARE_MAX 64
#define PATHS_SYSTEM_BASE "/run/allot"

/*
 * The directory name that stands for some hardware: "gpu" when spec is NULL, "sim-h200x2" for that
 * spec, "sim-<stem>-<hash of the real path>" when spec is a file. Fails with -ENOENT on a spec that
 * is neither a word nor a file.
 */
int paths_hardware(const char *spec, char ret_name[PATHS_HARDWARE_MAX], struct error *err);

/* The system daemon's run directory for that hardware. Touches nothing. */
int paths_system_run_dir(const char *hardware, char ret_dir[PATHS_MAX], struct error *err);

/* True when ALLOT_RUN_DIR names the base: the system daemon is then not meant. */
bool paths_base_is_overridden(void);

/* The caller's own run directory for that hardware. Touches nothing: see paths_make_private. */
int paths_private_run_dir(const char *hardware, char ret_dir[PATHS_MAX], struct error *err);

/* -EILSEQ when the path can't be told in JSON: it is not UTF-8, or has control characters. */
int paths_check_text(const char *dir, struct error *err);

/* Makes a run directory and its base (0700), and checks both as below. Directories above must exist. */
int paths_make_private(const char *run_dir, struct error *err);

/* Makes a directory of root's that everybody may look into (0755), and those above. -EPERM: another's. */
int paths_make_system(const char *dir, struct error *err);

/*
 * 0 when dir is a directory (no symlink), belongs to the caller's effective uid, and neither group
 * nor others may write to it. -ENOENT when it does not exist, -EPERM or -ENOTDIR otherwise.
 */
int paths_check_private(const char *dir, struct error *err);

/* dir "/" leaf. -ENAMETOOLONG when it takes more than `size` bytes (a socket's path: 108). */
int paths_join(const char *dir, const char *leaf, char *ret_path, size_t size, struct error *err);
