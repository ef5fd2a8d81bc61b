/* While region_control.trace asks for it, the process has a trace ring from the daemon (trace_record.h, trace_work.h). */
#pragma once

/*
 * Starts or ends tracing, as the control page says. Costs two loads if nothing has changed. The helper thread calls this, and
 * process_join(), so that a process is traced from its first launch on. Thread safe; makes no driver call.
 */
void trace_poll(void);

/* Call in a forked child: the ring is the parent's. */
void trace_reset(void);
