/*
 * Being traced: this process's ring, asked of the daemon when the control page says so, and let go when it no longer
 * does. What is recorded is trace_record.h's and trace_work.h's.
 */
#pragma once

/*
 * Looks whether it is to be traced, and does so from here on, or ends it. Nothing, two loads, where that is as it
 * was. By whoever joins the tenant, who starts the helper, and the helper itself: a process that is begun while its tenant
 * is traced is so from its first launch on. Thread safe; makes no driver call.
 */
void trace_look(void);

/* In a forked child, which records nothing for its parent. */
void trace_reset(void);
