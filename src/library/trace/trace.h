/*
 * Tracing this process. When the control page says that the tenant is traced (region_control.trace), the process gets a
 * trace ring from the daemon; when the trace ends, it gives the ring up. trace_record.h and trace_work.h do the recording.
 */
#pragma once

/*
 * Starts or ends tracing, as the control page says; costs two loads if nothing has changed. Called when the
 * process joins, when its helper starts, and by the helper. So a process that starts during a trace is traced from
 * its first launch on. Thread safe; makes no driver call.
 */
void trace_look(void);

/* Call in a forked child: stops recording, since the ring is its parent's. */
void trace_reset(void);
