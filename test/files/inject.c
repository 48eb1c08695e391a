/* Runs a program and lets one of its steps towards a file fail, come short, or be the last.
 *
 * The one idea: the kernel stops the program at every system call that makes, fills, syncs, renames or removes a file (seccomp and ptrace,
 * so that no library stands between), this counts them, and something happens at the n-th. What is written to standard error is not
 * counted.
 *
 *     inject LOG MODE N PROGRAM ARGUMENTS..
 *
 * MODE: none; error=E, the call fails with that errno; full=E, so does every later one that takes space; short, half of a write is done;
 * kill, the program ends by SIGKILL before the call; late, after it, and after half of a write; signal=S, it gets that signal before the
 * call. LOG gets a line for each call, "write 1" with its descriptor. The exit status is the program's, 128 + its signal. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SKIPPED = 77 };

#ifndef __x86_64__
int main(void)
{
    fputs("skipped: the registers of this processor are not known to test/files/inject.c\n", stderr);
    return SKIPPED;
}
#else
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>

typedef enum call_kind { OPEN, WRITE, CLOSE, SPACE, OTHER } call_kind;

static const struct {
    long number;
    const char *name;
    call_kind kind; /* SPACE: may find a full disk */
    int argument;   /* that is the descriptor, or the flags of an OPEN */
} calls[] = {
    {SYS_open, "open", OPEN, 1},           {SYS_openat, "open", OPEN, 2},          {SYS_creat, "open", SPACE, 0},
    {SYS_write, "write", WRITE, 0},        {SYS_pwrite64, "write", WRITE, 0},      {SYS_writev, "writev", SPACE, 0},
    {SYS_pwritev, "writev", SPACE, 0},     {SYS_close, "close", CLOSE, 0},         {SYS_fsync, "fsync", SPACE, 0},
    {SYS_fdatasync, "fsync", SPACE, 0},    {SYS_rename, "rename", SPACE, 0},       {SYS_renameat, "rename", SPACE, 0},
    {SYS_renameat2, "exchange", OTHER, 0}, {SYS_link, "link", SPACE, 0},           {SYS_linkat, "link", SPACE, 0},
    {SYS_unlink, "unlink", OTHER, 0},      {SYS_unlinkat, "unlink", OTHER, 0},     {SYS_truncate, "truncate", SPACE, 0},
    {SYS_ftruncate, "truncate", SPACE, 0}, {SYS_fallocate, "fallocate", SPACE, 0}, {SYS_copy_file_range, "copy", SPACE, 0},
    {SYS_sendfile, "copy", SPACE, 0},      {SYS_fchmod, "fchmod", OTHER, 0},       {SYS_fchmodat, "fchmod", OTHER, 0},
    {SYS_fchown, "fchown", OTHER, 0},      {SYS_fsetxattr, "setxattr", OTHER, 0},  {SYS_mkdir, "mkdir", SPACE, 0},
    {SYS_symlink, "link", SPACE, 0},       {SYS_symlinkat, "link", SPACE, 0},      {SYS_mkdirat, "mkdir", SPACE, 0},
    {SYS_rmdir, "rmdir", OTHER, 0},
};
enum { CALL_COUNT = sizeof calls / sizeof *calls, DESCRIPTORS = 1024 };

typedef enum mode { NONE, ERROR, FULL, SHORT, KILL, LATE, SIGNAL } mode;

static mode chosen;
static long number, point; /* of the mode; which call */
static long count;
static bool is_written[DESCRIPTORS];
static FILE *report;

static void become_traced(char **argv)
{
    struct sock_filter code[CALL_COUNT + 3];
    code[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < CALL_COUNT; i++)
        code[1 + i] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i].number, (unsigned char)(CALL_COUNT - i), 0);
    code[CALL_COUNT + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    code[CALL_COUNT + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE);
    struct sock_fprog program = {CALL_COUNT + 3, code};
    if (ptrace(PTRACE_TRACEME, 0, 0, 0) || raise(SIGSTOP) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        _exit(SKIPPED);
    execvp(argv[0], argv);
    _exit(127);
}

static long long argument_of(const struct user_regs_struct *r, int i)
{
    return (long long)(i == 0 ? r->rdi : i == 1 ? r->rsi : r->rdx);
}

/* Lets the call happen; `r` is what it leaves. False: the program has ended. */
static bool step_over(pid_t pid, struct user_regs_struct *r)
{
    int status;
    return ptrace(PTRACE_SYSCALL, pid, 0, 0) == 0 && waitpid(pid, &status, __WALL) == pid && WIFSTOPPED(status) &&
           ptrace(PTRACE_GETREGS, pid, 0, r) == 0;
}

static void deny(pid_t pid, struct user_regs_struct *r, bool is_close, long error)
{
    if (is_close && !step_over(pid, r)) /* a descriptor is closed even where that fails */
        return;
    if (!is_close)
        r->orig_rax = (unsigned long long)-1;
    r->rax = (unsigned long long)-error;
    ptrace(PTRACE_SETREGS, pid, 0, r);
}

static bool is_counted(int call, const struct user_regs_struct *r)
{
    long long value = argument_of(r, calls[call].argument);
    bool known = value >= 0 && value < DESCRIPTORS;
    switch (calls[call].kind) {
    case OPEN: return (value & (O_WRONLY | O_RDWR | O_CREAT)) != 0;
    case WRITE: return value != STDERR_FILENO;
    case CLOSE: return known && is_written[value];
    default: return calls[call].number != SYS_writev || value != STDERR_FILENO;
    }
}

/* The program stands before a call. */
static void meet(pid_t pid)
{
    struct user_regs_struct r;
    int call = 0;
    if (ptrace(PTRACE_GETREGS, pid, 0, &r))
        return;
    while (call < CALL_COUNT && calls[call].number != (long)r.orig_rax)
        call++;
    if (call == CALL_COUNT || !is_counted(call, &r))
        return;
    bool is_close = calls[call].kind == CLOSE, is_write = calls[call].kind == WRITE,
         takes_space = calls[call].kind != CLOSE && calls[call].kind != OTHER;
    count++;
    fprintf(report, "%s %lld\n", calls[call].name, argument_of(&r, calls[call].argument));
    if (is_close)
        is_written[r.rdi] = false;
    if (count == point && (chosen == SHORT || chosen == LATE) && is_write && r.rdx > 1) {
        r.rdx /= 2;
        ptrace(PTRACE_SETREGS, pid, 0, &r);
    }
    if (count == point && chosen == LATE && !step_over(pid, &r))
        return;
    if (count == point && (chosen == KILL || chosen == LATE))
        kill(pid, SIGKILL);
    else if (count == point && chosen == SIGNAL)
        kill(pid, (int)number);
    else if ((count == point && chosen == ERROR) || (count >= point && chosen == FULL && takes_space))
        deny(pid, &r, is_close, number);
    else if (calls[call].kind == OPEN && step_over(pid, &r) && (long long)r.rax >= 0 && r.rax < DESCRIPTORS)
        is_written[r.rax] = true;
}

static int trace(pid_t child)
{
    int status;
    if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status))
        return SKIPPED;
    if (ptrace(PTRACE_SETOPTIONS, child, 0,
               PTRACE_O_EXITKILL | PTRACE_O_TRACESECCOMP | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK))
        return SKIPPED;
    ptrace(PTRACE_CONT, child, 0, 0);
    for (pid_t pid; (pid = waitpid(-1, &status, __WALL)) > 0;) {
        if (!WIFSTOPPED(status) && pid == child)
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        if (!WIFSTOPPED(status))
            continue;
        int event = status >> 16, sent = WSTOPSIG(status) == SIGTRAP || WSTOPSIG(status) == SIGSTOP ? 0 : WSTOPSIG(status);
        if (event == PTRACE_EVENT_SECCOMP)
            meet(pid);
        ptrace(PTRACE_CONT, pid, 0, event ? 0 : sent);
    }
    return SKIPPED;
}

static bool parse_mode(const char *text)
{
    static const char *const names[] = {"none", "error=", "full=", "short", "kill", "late", "signal="};
    for (int i = 0; i < 7; i++) {
        size_t bytes = strlen(names[i]);
        if (strncmp(text, names[i], bytes) == 0) {
            chosen = (mode)i;
            number = atol(text + bytes);
            return true;
        }
    }
    return false;
}

int main(int argc, char **argv)
{
    if (argc < 5 || !parse_mode(argv[2]) || !(report = fopen(argv[1], "we"))) {
        fputs("usage: inject LOG MODE N PROGRAM ARGUMENTS..\n", stderr);
        return 2;
    }
    point = atol(argv[3]);
    pid_t child = fork();
    if (child == 0)
        become_traced(argv + 4);
    int status = trace(child);
    if (status == SKIPPED)
        fputs("skipped: the kernel does not let programs be traced here\n", stderr);
    fclose(report);
    return status;
}
#endif
