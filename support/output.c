#define _GNU_SOURCE /* O_PATH, renameat2 */
#include "support/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "support/shown.h"
#include "support/stop.h"

enum { MOST_LINKS = 40 };

typedef struct file_identity {
    dev_t device;
    ino_t inode;
    mode_t mode;
} file_identity;

typedef struct input {
    struct input *next;
    const char *shown;
    file_identity is;
    bool standard; /* - */
} input;

typedef enum output_kind {
    OUTPUT_FILE,       /* is made, or replaces a regular file */
    OUTPUT_DEVICE,     /* there, and no regular file: opened and written */
    OUTPUT_DESCRIPTOR, /* open already */
} output_kind;

typedef enum output_place { PLACE_NONE, PLACE_NEW, PLACE_EXCHANGED, PLACE_REPLACED } output_place;

struct output {
    output *next; /* as declared */
    output_set *set;
    output_kind kind;
    const char *shown, *path;
    int folder;       /* of the file at the end of all links; -1: none is open */
    const char *base; /* its name there */
    file_identity is, folder_is;
    bool exists, failed, is_put;
    int descriptor; /* -1: not open */
    unfinished file;
    bool has_file;
    output_place place;
};

struct output_set {
    arena *arena;
    diag_list *diags;
    input *inputs;
    output *outputs, **end;
};

output_set *output_set_new(arena *a, diag_list *diags)
{
    output_set *s = ARENA_NEW(a, output_set);
    *s = (output_set){.arena = a, .diags = diags, .end = &s->outputs};
    return s;
}

static file_identity identity_of(const struct stat *st)
{
    return (file_identity){st->st_dev, st->st_ino, st->st_mode};
}

static bool is_same(const file_identity *a, const file_identity *b)
{
    return a->device == b->device && a->inode == b->inode;
}

static bool is_of(const file_identity *a, const struct stat *st)
{
    file_identity b = identity_of(st);
    return is_same(a, &b);
}

/* ---- faults ---- */

static bool fail(output *o, int error)
{
    if (!o->failed)
        diag_add(o->set->diags, E_FILE_WRITE, SRC_NOWHERE, "cannot write %s: %s", o->shown, strerror(error ? error : EIO));
    o->failed = true;
    return false;
}

static bool refuse(output *o, const char *why, const char *help)
{
    diag_help(o->set->diags, diag_add(o->set->diags, E_FILE_WRITE, SRC_NOWHERE, "cannot write %s: %s", o->shown, why), "%s", help);
    o->failed = true;
    return false;
}

static bool refuse_read_only(output *o, const char *why)
{
    diag *d =
        diag_add(o->set->diags, E_OUTPUT_READ_ONLY, SRC_NOWHERE, "the output would replace %s, which is read-only: %s", o->shown, why);
    diag_help(o->set->diags, d, "write to another file, or make this one writable");
    o->failed = true;
    return false;
}

/* ---- which file a name means ---- */

static bool is_proc(int folder)
{
    struct statfs st;
    return fstatfs(folder, &st) == 0 && st.f_type == PROC_SUPER_MAGIC;
}

/* /proc/self/fd/N: the link's text is no name, its file is the descriptor. -1: it is of another process. */
static int descriptor_named(int folder, const char *base)
{
    struct stat own, there;
    char *end;
    long number = strtol(base, &end, 10);
    if (*end || stat("/proc/self/fd", &own) || fstat(folder, &there))
        return -1;
    file_identity descriptors = identity_of(&own);
    return is_of(&descriptors, &there) ? (int)number : -1;
}

static bool take_descriptor(output *o, int descriptor)
{
    struct stat st;
    int flags = fcntl(descriptor, F_GETFL);
    if (flags < 0 || fstat(descriptor, &st))
        return fail(o, EBADF);
    if ((flags & O_ACCMODE) == O_RDONLY || flags & O_PATH)
        return refuse(o, "it is not open for writing", "write to a file, or to - for standard output");
    o->kind = OUTPUT_DESCRIPTOR;
    o->descriptor = descriptor;
    o->is = identity_of(&st);
    o->exists = true;
    return true;
}

static void close_folder(output *o)
{
    if (o->folder >= 0)
        close(o->folder);
    o->folder = -1;
}

/* Follows the links of the last name; those before it are the system's. */
static bool find_place(output *o)
{
    const char *path = o->path;
    int folder = AT_FDCWD;
    for (int links = 0; links < MOST_LINKS; links++) {
        struct stat st;
        const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
        if (!*base || strcmp(base, ".") == 0 || strcmp(base, "..") == 0)
            return fail(o, *path ? EISDIR : ENOENT);
        int inner =
            openat(folder, slash ? arena_strndup(o->set->arena, path, (size_t)(slash - path) + 1) : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (inner < 0)
            return fail(o, errno);
        close_folder(o);
        o->folder = folder = inner;
        o->base = base;
        if (fstat(folder, &st))
            return fail(o, errno);
        o->folder_is = identity_of(&st);
        o->exists = fstatat(folder, base, &st, AT_SYMLINK_NOFOLLOW) == 0;
        if (!o->exists)
            return errno == ENOENT || fail(o, errno);
        o->is = identity_of(&st);
        if (!S_ISLNK(st.st_mode))
            return true;
        if (is_proc(folder)) {
            int descriptor = descriptor_named(folder, base);
            return descriptor < 0 ? refuse(o, "it belongs to another process", "write to a file, or to - for standard output")
                                  : take_descriptor(o, descriptor);
        }
        char *target = arena_alloc(o->set->arena, PATH_MAX + 1);
        if (readlinkat(folder, base, target, PATH_MAX) < 0)
            return fail(o, errno);
        path = target;
    }
    return fail(o, ELOOP);
}

/* A file that its owner made read-only is not written by root either, whom the system would let. */
static bool may_be_replaced(output *o)
{
    if (faccessat(o->folder, ".", W_OK | X_OK, AT_EACCESS))
        return errno == EACCES
                   ? refuse(o, "its folder takes no other file", "write to another folder; an output is made next to its place and renamed")
                   : fail(o, errno);
    if (!o->exists)
        return true;
    if ((o->is.mode & (S_IWUSR | S_IWGRP | S_IWOTH)) == 0)
        return refuse_read_only(o, arena_printf(o->set->arena, "its mode is %04o", (unsigned)(o->is.mode & 07777)));
    if (faccessat(o->folder, o->base, W_OK, AT_EACCESS))
        return errno == EACCES ? refuse_read_only(o, "this user may not write it") : fail(o, errno);
    return true;
}

static bool judge_kind(output *o)
{
    if (o->kind == OUTPUT_DESCRIPTOR)
        return true;
    if (!o->exists || S_ISREG(o->is.mode))
        return may_be_replaced(o);
    if (S_ISDIR(o->is.mode))
        return fail(o, EISDIR);
    if (S_ISSOCK(o->is.mode))
        return refuse(o, "it is a socket", "write to a file or a pipe");
    if (S_ISBLK(o->is.mode))
        return refuse(o, "it is a disk", "write to a file; dd copies files onto disks");
    o->kind = OUTPUT_DEVICE;
    return true;
}

/* ---- which files are one ---- */

/* Bytes meet in a regular file and in a named pipe; a terminal is read and written, and so is a socket that is both standard streams. */
static bool is_input(const output *o, const input *in)
{
    bool meets = S_ISREG(o->is.mode) || (S_ISFIFO(o->is.mode) && o->kind == OUTPUT_DEVICE);
    return o->exists && meets && is_same(&o->is, &in->is);
}

static bool are_one(const output *a, const output *b)
{
    bool streams = a->kind == OUTPUT_DESCRIPTOR && b->kind == OUTPUT_DESCRIPTOR;
    if (a->exists != b->exists || streams)
        return false;
    if (a->exists)
        return !S_ISCHR(a->is.mode) && is_same(&a->is, &b->is);
    return is_same(&a->folder_is, &b->folder_is) && strcmp(a->base, b->base) == 0;
}

/* Both are true, as what they say is. */
static bool refuse_input(const output *o, const input *in)
{
    diag *d = diag_add(o->set->diags, E_OUTPUT_INPUT, SRC_NOWHERE, "the output %s would replace the input %s", o->shown, in->shown);
    if (strcmp(o->shown, in->shown) != 0)
        diag_note(o->set->diags, d, SRC_NOWHERE, "both names are one file");
    diag_help(o->set->diags, d, "write to another file; nothing was written");
    return true;
}

static bool refuse_twice(const output *o, const output *other)
{
    diag *d = diag_add(o->set->diags, E_OUTPUT_TWICE, SRC_NOWHERE, "two outputs are one file: %s and %s", other->shown, o->shown);
    diag_help(o->set->diags, d, "write each to a file of its own; nothing was written");
    return true;
}

/* ---- declaring ---- */

static bool can_be_read_again(const input *in)
{
    return !in->standard && (S_ISREG(in->is.mode) || S_ISCHR(in->is.mode) || S_ISDIR(in->is.mode));
}

bool output_set_reads(output_set *s, const char *path)
{
    struct stat st;
    bool standard = strcmp(path, "-") == 0;
    if (standard ? fstat(STDIN_FILENO, &st) : stat(path, &st))
        return true;
    input *in = ARENA_NEW(s->arena, input);
    *in = (input){s->inputs, shown_input(path, s->arena), identity_of(&st), standard};
    for (const input *other = s->inputs; other; other = other->next)
        if (is_same(&other->is, &in->is) && !(can_be_read_again(in) && can_be_read_again(other))) {
            diag *d = diag_add(s->diags, E_INPUT_TWICE, SRC_NOWHERE, "%s is read twice, and its bytes come once", in->shown);
            diag_help(s->diags, d, "store them in a file, and name that twice");
            return false;
        }
    s->inputs = in;
    for (const output *o = s->outputs; o; o = o->next)
        if (is_input(o, in))
            return !refuse_input(o, in);
    return true;
}

static bool clashes(const output *o)
{
    for (const input *in = o->set->inputs; in; in = in->next)
        if (is_input(o, in))
            return refuse_input(o, in);
    for (const output *other = o->set->outputs; other; other = other->next)
        if (are_one(o, other))
            return refuse_twice(o, other);
    return false;
}

output *output_declare(output_set *s, const char *path)
{
    output *o = ARENA_NEW(s->arena, output);
    *o = (output){.set = s, .path = path, .shown = shown_output(path, s->arena), .folder = -1, .descriptor = -1};
    bool found = strcmp(path, "-") == 0 ? take_descriptor(o, STDOUT_FILENO) : find_place(o);
    if (!found || !judge_kind(o) || clashes(o)) {
        close_folder(o);
        return NULL;
    }
    *s->end = o;
    s->end = &o->next;
    return o;
}

bool output_is_stream(const output *o)
{
    return o->kind != OUTPUT_FILE;
}

/* ---- writing ---- */

int output_write_descriptor(int descriptor, const void *bytes, size_t size)
{
    enum { PIECE = 1 << 30 };
    for (const char *at = bytes; size > 0;) {
        ssize_t done = write(descriptor, at, size < PIECE ? size : PIECE);
        if (done < 0 && errno == EAGAIN)
            poll(&(struct pollfd){descriptor, POLLOUT, 0}, 1, -1);
        else if (done == 0 || (done < 0 && errno != EINTR))
            return done ? errno : EIO;
        at += done > 0 ? done : 0;
        size -= done > 0 ? (size_t)done : 0;
    }
    return 0;
}

/* Attributes besides mode and owner: lists of who may what, and what users attach. 0 or the errno; what only root may set is left out. */
static int copy_attributes(int from, int to, arena *a)
{
    ssize_t bytes = flistxattr(from, NULL, 0);
    if (bytes <= 0)
        return 0;
    char *names = arena_alloc(a, (size_t)bytes + 1);
    bytes = flistxattr(from, names, (size_t)bytes);
    for (ssize_t at = 0; at < bytes; at += (ssize_t)strlen(names + at) + 1) {
        ssize_t size = fgetxattr(from, names + at, NULL, 0);
        char *value = size >= 0 ? arena_alloc(a, (size_t)size + 1) : NULL;
        bool copied = value && (size = fgetxattr(from, names + at, value, (size_t)size)) >= 0 &&
                      fsetxattr(to, names + at, value, (size_t)size, 0) == 0;
        if (!copied && strncmp(names + at, "system.", 7) == 0) /* access lists: without them others might read it */
            return errno;
    }
    return 0;
}

/* The new file is to the system what the old one is. Where this user cannot give it away, its group gets no more than everybody had. */
static int keep_properties(const output *o)
{
    struct stat st;
    if (fstatat(o->folder, o->base, &st, AT_SYMLINK_NOFOLLOW))
        return errno == ENOENT ? 0 : errno;
    mode_t mode = st.st_mode & 07777;
    if (fchown(o->descriptor, st.st_uid, (gid_t)-1))
        mode &= ~(mode_t)S_ISUID;
    if (fchown(o->descriptor, (uid_t)-1, st.st_gid))
        mode = (mode & ~(mode_t)(S_ISGID | S_IRWXG)) | (mode & (mode & S_IRWXO) << 3);
    if (fchmod(o->descriptor, mode))
        return errno;
    int old = openat(o->folder, o->base, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    int error = old < 0 ? 0 : copy_attributes(old, o->descriptor, o->set->arena);
    if (old >= 0)
        close(old);
    return error;
}

/* 0 or the errno. */
static int open_output(output *o)
{
    struct stat st;
    switch (o->kind) {
    case OUTPUT_FILE:
        o->descriptor = unfinished_create(&o->file, o->folder, o->exists ? 0600 : 0666);
        o->has_file = o->descriptor >= 0;
        return !o->has_file ? errno : o->exists ? keep_properties(o) : 0;
    case OUTPUT_DEVICE:
        o->descriptor = openat(o->folder, o->base, O_WRONLY | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC);
        if (o->descriptor < 0 || fstat(o->descriptor, &st))
            return errno;
        return is_of(&o->is, &st) ? 0 : ESTALE;
    case OUTPUT_DESCRIPTOR: break;
    }
    return o->descriptor == STDOUT_FILENO && fflush(stdout) ? errno : 0; /* what was printed before comes before */
}

bool output_put(output *o, const void *bytes, size_t size)
{
    int error = 0;
    if (o->failed)
        return false;
    if (!o->is_put)
        error = open_output(o);
    o->is_put = true;
    if (!error)
        error = output_write_descriptor(o->descriptor, bytes, size);
    return !error || fail(o, error);
}

/* ---- taking places ---- */

static bool is_unsupported(int error)
{
    return error == EINVAL || error == EROFS || error == ENOTSUP || error == ENOSYS || error == ENOTTY;
}

/* Complete, on the disk, closed. */
static bool finish(output *o)
{
    if (o->kind == OUTPUT_DESCRIPTOR || o->descriptor < 0)
        return !o->failed;
    int error = 0;
    while (o->kind == OUTPUT_FILE && !o->failed && (error = fsync(o->descriptor) ? errno : 0) == EINTR)
        ;
    error = is_unsupported(error) ? 0 : error;
    if (close(o->descriptor) && errno != EINTR)
        error = error ? error : errno;
    o->descriptor = -1;
    return !error ? !o->failed : fail(o, error);
}

static bool is_still_there(const output *o)
{
    struct stat st;
    return o->exists && fstatat(o->folder, o->base, &st, AT_SYMLINK_NOFOLLOW) == 0 && is_of(&o->is, &st);
}

/* One of several changes places with the old file, so that it can go back. 0 or the errno. */
static int take_place(output *o, bool several)
{
    if (several && is_still_there(o)) {
        if (renameat2(o->folder, o->file.name, o->folder, o->base, RENAME_EXCHANGE) == 0) {
            o->place = PLACE_EXCHANGED;
            return 0;
        }
        if (!is_unsupported(errno))
            return errno;
    }
    if (renameat(o->folder, o->file.name, o->folder, o->base))
        return errno;
    o->place = o->exists ? PLACE_REPLACED : PLACE_NEW;
    unfinished_done(&o->file);
    return 0;
}

static void go_back(output *o)
{
    if (o->place == PLACE_EXCHANGED && renameat2(o->folder, o->file.name, o->folder, o->base, RENAME_EXCHANGE)) {
        unfinished_done(&o->file); /* the old file is there */
        o->has_file = false;
        diag_note(o->set->diags, diag_add(o->set->diags, E_FILE_WRITE, SRC_NOWHERE, "cannot take back %s: %s", o->shown, strerror(errno)),
                  SRC_NOWHERE, "what it was is in %s next to it", o->file.name);
    } else if (o->place == PLACE_NEW && unlinkat(o->folder, o->base, 0)) {
        diag_add(o->set->diags, E_FILE_WRITE, SRC_NOWHERE, "cannot take back %s: %s", o->shown, strerror(errno));
    } else if (o->place == PLACE_REPLACED) {
        diag_add(o->set->diags, E_FILE_WRITE, SRC_NOWHERE, "%s is written, another output is not", o->shown);
    }
}

static bool take_places(output_set *s)
{
    size_t files = 0;
    int error = 0;
    for (output *o = s->outputs; o; o = o->next)
        files += o->has_file;
    stop_hold();
    for (output *o = s->outputs; o && !error; o = o->next)
        if (o->has_file && (error = take_place(o, files > 1)) != 0)
            fail(o, error);
    for (output *o = s->outputs; o && error; o = o->next)
        go_back(o);
    if (!error)
        stop_outputs_written();
    stop_release();
    return !error;
}

static bool sync_folder(output *o)
{
    int folder = openat(o->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), error = 0;
    if (folder < 0)
        return true; /* one may write in it and not read it */
    while ((error = fsync(folder) ? errno : 0) == EINTR)
        ;
    close(folder);
    if (error && !is_unsupported(error))
        diag_add(o->set->diags, E_FILE_WRITE, SRC_NOWHERE, "%s is written, but a power failure may undo that: its folder: %s", o->shown,
                 strerror(error));
    return !error || is_unsupported(error);
}

static bool remove_file(output *o)
{
    bool stays = o->place == PLACE_NEW || o->place == PLACE_REPLACED || !o->has_file;
    int error = stays ? 0 : unfinished_remove(&o->file);
    o->has_file = false;
    if (error)
        diag_add(o->set->diags, E_FILE_WRITE, SRC_NOWHERE, "cannot remove %s, next to %s: %s", o->file.name, o->shown, strerror(error));
    return !error;
}

bool output_set_commit(output_set *s)
{
    bool good = true;
    errno = 0;
    if (fflush(stdout) || ferror(stdout)) {
        diag_add(s->diags, E_FILE_WRITE, SRC_NOWHERE, "cannot write standard output: %s", strerror(errno ? errno : EIO));
        clearerr(stdout);
        good = false;
    }
    for (output *o = s->outputs; o; o = o->next)
        good = finish(o) && good;
    good = good && take_places(s);
    for (output *o = s->outputs; o; o = o->next)
        good = remove_file(o) && good;
    for (output *o = s->outputs; o && good; o = o->next)
        good = o->place == PLACE_NONE || sync_folder(o);
    return good;
}

void output_set_free(output_set *s)
{
    for (output *o = s->outputs; o; o = o->next) {
        if (o->kind != OUTPUT_DESCRIPTOR && o->descriptor >= 0)
            close(o->descriptor);
        o->descriptor = -1;
        remove_file(o);
        close_folder(o);
    }
}

bool output_write(const char *path, const void *bytes, size_t size, diag_list *diags)
{
    output_set *s = output_set_new(diags->arena, diags);
    output *o = output_declare(s, path);
    bool good = o && output_put(o, bytes, size) && output_set_commit(s);
    output_set_free(s);
    return good;
}
