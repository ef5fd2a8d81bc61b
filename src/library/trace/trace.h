/*
 * Tracing of this process. While the control page says that the tenant is traced (region_control.trace), the process has a
 * trace ring from the daemon. trace_record.h and trace_work.h write into it.
 */
#pragma once

/*
 * Starts or ends tracing, as the control page says. Costs two loads if nothing has changed. Called by the helper thread, and
 * when the process joins, so that it is traced from its first launch on. Thread safe; makes no driver call.
 */
void trace_poll(void);

/* Call in a forked child: stops recording, because the ring is the parent's. */
void trace_reset(void);
