/* `allot-sim --ctl`: asks a running server for statistics, or for a fault. */
#ifndef ALLOT_SIM_CTL_H
#define ALLOT_SIM_CTL_H

/* Words after the options; prints to stdout, errors to stderr. The exit status. */
int ctl_main(const char *socket_path, int words_n, char **words);

#endif
