/*
 * Being traced: this process's ring, asked of the daemon when the control page says so, and let go when it no longer
 * does. What is recorded is trace_record.h's and trace_work.h's.
 */
#pragma once

/*
 * Starts or ends tracing, as the control page says; two loads if nothing has changed. Called when the process joins, when its
 * helper starts, and by the helper: so a process that starts during a trace is traced from its first launch on.
 * Thread safe; makes no driver call.
 */
void trace_look(void);

/* In a forked child, which records nothing for its parent. */
void trace_reset(void);
