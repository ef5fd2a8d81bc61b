/* As much of OpenGL as cudaGL.h names: its functions' types are to be compared, not called. */
typedef unsigned int GLenum;
typedef unsigned int GLuint;
