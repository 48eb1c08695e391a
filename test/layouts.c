/* What two C libraries must agree on, as lines of text.
 *
 * The one idea: visac's objects are compiled against glibc's headers and linked with musl (cmake/dependencies.cmake), as the archives are
 * that it links. So whatever those headers lay down (sizes, offsets, constants, tables) and these objects use has to be the same in musl's;
 * this program is compiled once against each, and layouts.py compares what the two print. */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <locale.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define TYPE(type) printf(#type " %zu bytes, aligned to %zu\n", sizeof(type), _Alignof(type))
#define FIELD(type, field) printf(#type "." #field " at %zu, %zu bytes\n", offsetof(type, field), sizeof(((type *)0)->field))
#define NUMBER(name) printf(#name " %lld\n", (long long)(name))

/* The table behind the macros of <ctype.h>, which archives have been compiled with. */
extern const unsigned short **__ctype_b_loc(void);

static void types(void)
{
    TYPE(pthread_t), TYPE(pthread_attr_t), TYPE(pthread_mutex_t), TYPE(pthread_cond_t), TYPE(pthread_once_t), TYPE(pthread_key_t);
    TYPE(jmp_buf), TYPE(sigset_t), TYPE(cpu_set_t), TYPE(posix_spawn_file_actions_t), TYPE(posix_spawnattr_t);
    TYPE(off_t), TYPE(mode_t), TYPE(dev_t), TYPE(ino_t), TYPE(time_t), TYPE(pid_t), TYPE(uid_t), TYPE(size_t), TYPE(wchar_t);
    TYPE(struct stat), FIELD(struct stat, st_dev), FIELD(struct stat, st_ino), FIELD(struct stat, st_nlink), FIELD(struct stat, st_mode);
    FIELD(struct stat, st_uid), FIELD(struct stat, st_gid), FIELD(struct stat, st_rdev), FIELD(struct stat, st_size);
    FIELD(struct stat, st_blksize), FIELD(struct stat, st_mtim), FIELD(struct stat, st_ctim);
    TYPE(struct sigaction), FIELD(struct sigaction, sa_handler), FIELD(struct sigaction, sa_mask), FIELD(struct sigaction, sa_flags);
    TYPE(struct timespec), FIELD(struct timespec, tv_sec), FIELD(struct timespec, tv_nsec), TYPE(struct timeval);
    TYPE(struct iovec), FIELD(struct iovec, iov_len), TYPE(struct pollfd), FIELD(struct pollfd, events), FIELD(struct pollfd, revents);
    TYPE(struct rlimit), FIELD(struct rlimit, rlim_cur), FIELD(struct rlimit, rlim_max);
    TYPE(struct statfs), FIELD(struct statfs, f_type), TYPE(struct statvfs), FIELD(struct statvfs, f_bavail), FIELD(struct statvfs, f_flag);
    TYPE(struct option), FIELD(struct option, has_arg), FIELD(struct option, flag), FIELD(struct option, val);
    FIELD(struct lconv, decimal_point), TYPE(div_t), TYPE(ldiv_t);
}

static void numbers(void)
{
    NUMBER(E2BIG), NUMBER(EACCES), NUMBER(EADDRINUSE), NUMBER(EAGAIN), NUMBER(EBADF), NUMBER(EBUSY), NUMBER(ECHILD), NUMBER(EDQUOT);
    NUMBER(EEXIST), NUMBER(EFAULT), NUMBER(EFBIG), NUMBER(EINTR), NUMBER(EINVAL), NUMBER(EIO), NUMBER(EISDIR), NUMBER(ELOOP),
        NUMBER(EMFILE);
    NUMBER(EMLINK), NUMBER(ENAMETOOLONG), NUMBER(ENFILE), NUMBER(ENODEV), NUMBER(ENOENT), NUMBER(ENOEXEC), NUMBER(ENOMEM), NUMBER(ENOSPC);
    NUMBER(ENOSYS), NUMBER(ENOTDIR), NUMBER(ENOTEMPTY), NUMBER(ENOTSUP), NUMBER(ENOTTY), NUMBER(ENXIO), NUMBER(EOPNOTSUPP),
        NUMBER(EOVERFLOW);
    NUMBER(EPERM), NUMBER(EPIPE), NUMBER(ERANGE), NUMBER(EROFS), NUMBER(ESPIPE), NUMBER(ESTALE), NUMBER(ETIMEDOUT), NUMBER(ETXTBSY);
    NUMBER(EXDEV);
    NUMBER(O_APPEND), NUMBER(O_CLOEXEC), NUMBER(O_CREAT), NUMBER(O_DIRECTORY), NUMBER(O_EXCL), NUMBER(O_NOCTTY);
    NUMBER(O_NOFOLLOW), NUMBER(O_NONBLOCK), NUMBER(O_PATH), NUMBER(O_RDONLY), NUMBER(O_RDWR), NUMBER(O_TRUNC), NUMBER(O_WRONLY);
    NUMBER(AT_EACCESS), NUMBER(AT_EMPTY_PATH), NUMBER(AT_FDCWD), NUMBER(AT_REMOVEDIR), NUMBER(AT_SYMLINK_NOFOLLOW), NUMBER(AT_EXECFN);
    NUMBER(F_GETFD), NUMBER(F_GETFL), NUMBER(F_SETFD), NUMBER(F_SETFL), NUMBER(F_OK), NUMBER(R_OK), NUMBER(W_OK), NUMBER(X_OK);
    NUMBER(S_IFMT), NUMBER(S_IFREG), NUMBER(S_IFDIR), NUMBER(S_IFLNK), NUMBER(S_IFCHR), NUMBER(S_IFBLK), NUMBER(S_IFIFO), NUMBER(S_IFSOCK);
    NUMBER(SEEK_SET), NUMBER(SEEK_CUR), NUMBER(SEEK_END), NUMBER(_IOFBF), NUMBER(_IOLBF), NUMBER(_IONBF), NUMBER(EOF);
    NUMBER(MAP_ANONYMOUS), NUMBER(MAP_FIXED), NUMBER(MAP_NORESERVE), NUMBER(MAP_PRIVATE), NUMBER(MAP_SHARED), NUMBER((intptr_t)MAP_FAILED);
    NUMBER(PROT_NONE), NUMBER(PROT_READ), NUMBER(PROT_WRITE), NUMBER(MADV_DONTNEED), NUMBER(MADV_HUGEPAGE);
    NUMBER(MREMAP_MAYMOVE), NUMBER(MS_SYNC), NUMBER(MFD_CLOEXEC), NUMBER(GRND_NONBLOCK);
    NUMBER(SIGHUP), NUMBER(SIGINT), NUMBER(SIGQUIT), NUMBER(SIGABRT), NUMBER(SIGBUS), NUMBER(SIGKILL), NUMBER(SIGSEGV), NUMBER(SIGPIPE);
    NUMBER(SIGTERM), NUMBER(SIGCHLD), NUMBER(SIGXCPU), NUMBER(SIGXFSZ), NUMBER(SA_RESTART), NUMBER(SIG_BLOCK), NUMBER(SIG_UNBLOCK);
    NUMBER(SIG_SETMASK), NUMBER((intptr_t)SIG_DFL), NUMBER((intptr_t)SIG_IGN), NUMBER(POSIX_SPAWN_SETSIGMASK);
    NUMBER(CLOCK_REALTIME), NUMBER(CLOCK_MONOTONIC), NUMBER(CLOCK_PROCESS_CPUTIME_ID), NUMBER(CLOCK_THREAD_CPUTIME_ID);
    NUMBER(_SC_NPROCESSORS_ONLN), NUMBER(_SC_PAGESIZE), NUMBER(_SC_PHYS_PAGES), NUMBER(RLIMIT_AS), NUMBER(RLIMIT_STACK), NUMBER(ST_RDONLY);
    NUMBER(PTHREAD_CREATE_DETACHED), NUMBER(LC_ALL), NUMBER(POLLIN), NUMBER(RAND_MAX);
}

static void tables(void)
{
    for (int c = 0; c < 256; c++)
        printf("character %d: %x\n", c, (*__ctype_b_loc())[c]);
    static const pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static const pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
    static const pthread_once_t once = PTHREAD_ONCE_INIT;
    static const struct {
        const char *name;
        const void *from;
        size_t bytes;
    } begins[] = {{"mutex", &mutex, sizeof mutex}, {"cond", &cond, sizeof cond}, {"once", &once, sizeof once}};
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
        printf("%s begins as", begins[i].name);
        for (size_t b = 0; b < begins[i].bytes; b++)
            printf(" %02x", ((const unsigned char *)begins[i].from)[b]);
        printf("\n");
    }
}

int main(void)
{
    types();
    numbers();
    tables();
    return 0;
}
