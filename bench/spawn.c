/* Starts a program and measures it: prints wall time (ns), peak memory (KiB), user and system time (us), page faults.
 *
 * The one idea: the one who starts is small. A child's peak memory begins with that of the process it was forked from,
 * so that a large parent (a Python, say) would hide a small child. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long long now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static long long us_of(struct timeval t)
{
    return t.tv_sec * 1000000LL + t.tv_usec;
}

static void become(char **command)
{
    int nowhere = open("/dev/null", O_RDWR);
    dup2(nowhere, STDIN_FILENO);
    dup2(nowhere, STDOUT_FILENO);
    execvp(command[0], command);
    perror(command[0]);
    _exit(127);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return fputs("usage: bench_spawn COMMAND ARGUMENT...\n", stderr), 2;
    struct rusage use;
    int status;
    long long begin = now_ns();
    pid_t child = fork();
    if (child == 0)
        become(argv + 1);
    if (child < 0 || wait4(child, &status, 0, &use) != child)
        return perror("bench_spawn"), 1;
    long long wall_ns = now_ns() - begin;
    printf("%lld %ld %lld %lld %ld\n", wall_ns, use.ru_maxrss, us_of(use.ru_utime), us_of(use.ru_stime), use.ru_minflt + use.ru_majflt);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
