/* open FILE: opens the file for reading and writing. The exit status is the error's number. */
#include <errno.h>
#include <fcntl.h>

int main(int argc, char **argv)
{
	return argc == 2 && open(argv[1], O_RDWR) < 0 ? errno : 0;
}
