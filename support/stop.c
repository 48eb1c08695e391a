#include "support/stop.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "support/diag.h"

/* Whose turn it is: the handler takes it for good, the program only while it changes the list or the places of files. */
enum { TURN_FREE, TURN_HELD, TURN_STOPPED };
static atomic_int turn;
static atomic_int waiting; /* a signal that came while the turn was held */
static atomic_bool written;
static unfinished *list;
static const char *program = "visa";

static const struct {
    int number;
    const char *name;
} stops[] = {{SIGHUP, "SIGHUP"}, {SIGINT, "SIGINT"}, {SIGQUIT, "SIGQUIT"}, {SIGTERM, "SIGTERM"}, {SIGXCPU, "SIGXCPU"}};
enum { STOP_COUNT = sizeof stops / sizeof *stops };

/* ---- what a signal handler may call ---- */

static void say(const char *text)
{
    for (size_t left = strlen(text); left > 0;) {
        ssize_t done = write(STDERR_FILENO, text, left);
        if (done <= 0)
            return;
        text += done;
        left -= (size_t)done;
    }
}

static void say_stopped(int number)
{
    say(program);
    say(": error[");
    say(diag_row_of(E_STOPPED)->name);
    say("]: stopped by ");
    for (int i = 0; i < STOP_COUNT; i++)
        if (stops[i].number == number)
            say(stops[i].name);
    say(atomic_load(&written) ? ": the outputs were written before\n" : ": no file was written\n");
}

static void remove_all(void)
{
    for (const unfinished *u = list; u; u = u->next)
        unlinkat(u->folder, u->name, 0);
}

static void on_signal(int number)
{
    int error = errno, free = TURN_FREE;
    atomic_store(&waiting, number);
    if (!atomic_compare_exchange_strong(&turn, &free, TURN_STOPPED)) {
        errno = error;
        return;
    }
    remove_all();
    say_stopped(number);
    signal(number, SIG_DFL);
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, number);
    raise(number);
    pthread_sigmask(SIG_UNBLOCK, &one, NULL);
    _exit(128 + number);
}

/* ---- the beginning ---- */

/* A file that got the number of a closed standard stream would be what is printed. What is opened instead refuses to be used. */
static void open_standard_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
            _exit(EXIT_FAILURE);
}

void stop_begin(const char *name)
{
    program = name;
    open_standard_streams();
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    struct sigaction old, action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < STOP_COUNT; i++)
        sigaddset(&action.sa_mask, stops[i].number);
    for (int i = 0; i < STOP_COUNT; i++)
        if (sigaction(stops[i].number, NULL, &old) == 0 && old.sa_handler != SIG_IGN) /* nohup */
            sigaction(stops[i].number, &action, NULL);
}

void stop_hold(void)
{
    for (int free = TURN_FREE; !atomic_compare_exchange_strong(&turn, &free, TURN_HELD); free = TURN_FREE)
        pause(); /* the handler runs in another thread and ends the process */
}

void stop_release(void)
{
    atomic_store(&turn, TURN_FREE);
    int number = atomic_exchange(&waiting, 0);
    if (number)
        raise(number);
}

void stop_outputs_written(void)
{
    atomic_store(&written, true);
}

/* ---- unfinished files ---- */

/* The same name twice is as likely as a disk that fails; O_EXCL refuses it then. */
static void choose_name(unfinished *u)
{
    uint64_t number;
    struct timespec now;
    if (getrandom(&number, sizeof number, GRND_NONBLOCK) != sizeof number) {
        clock_gettime(CLOCK_REALTIME, &now);
        number = (uint64_t)now.tv_nsec << 32 ^ (uint64_t)now.tv_sec << 16 ^ (uint64_t)getpid();
    }
    snprintf(u->name, sizeof u->name, ".visa-%016llx.tmp", (unsigned long long)number);
}

int unfinished_create(unfinished *u, int folder, mode_t mode)
{
    enum { ATTEMPTS = 100 };
    int fd = -1, error = EEXIST;
    u->folder = folder;
    stop_hold();
    for (int i = 0; i < ATTEMPTS && fd < 0 && error == EEXIST; i++) {
        choose_name(u);
        fd = openat(folder, u->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        error = fd < 0 ? errno : 0;
    }
    if (fd >= 0) {
        u->next = list;
        list = u;
    }
    stop_release();
    errno = error;
    return fd;
}

void unfinished_done(unfinished *u)
{
    unfinished **at = &list;
    while (*at && *at != u)
        at = &(*at)->next;
    if (*at)
        *at = u->next;
}

int unfinished_remove(unfinished *u)
{
    stop_hold();
    int error = unlinkat(u->folder, u->name, 0) == 0 ? 0 : errno;
    unfinished_done(u);
    stop_release();
    return error;
}

void unfinished_remove_all(void)
{
    stop_hold();
    remove_all();
    list = NULL;
    stop_release();
}
