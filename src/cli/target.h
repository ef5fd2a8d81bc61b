/* The options that select a daemon, shared by the subcommands that talk to a running daemon. */
#pragma once

#include "cli/command.h"
#include "cli/daemon.h"

/* Option rows for a struct that has a member `struct daemon_target target`. */
#define TARGET_ROWS(type) \
	OPTION("--sim", OPTION_VALUE_REQUIRED, "SPEC", option_text, type, target.sim_spec, \
	       .offered = OPTION_SIM_SPECS, \
	       .help = "use the simulated GPU that allot run --sim SPEC\nstarted"), \
		OPTION("--run-dir", OPTION_VALUE_REQUIRED, "DIR", option_text, type, \
		       target.run_dir, .help = "use the daemon whose run directory is DIR")
