/* The heap of a program that runs and checks kernels.
 *
 * The one idea: what several threads ask for comes from one heap that is prepared once, in huge pages where the system has them. glibc
 * would begin another heap for each thread, and let it grow page by page, with a call of the system and a fault for each: of a check that
 * takes 40 ms, 1,600 calls and half of all faults. */
#ifndef VISA_TOOLS_HEAP_H
#define VISA_TOOLS_HEAP_H

/* Before threads are begun. Another C library's heap stays as it is. */
void heap_prepare(void);

#endif
