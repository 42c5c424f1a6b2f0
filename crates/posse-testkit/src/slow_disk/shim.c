/* Makes every file operation of one process slow, or lets it hang. Loaded with LD_PRELOAD; see ../slow_disk.rs.
 *
 * Before each operation the shim notes the thread and the operation in $SLOW_DISK/log, waits $SLOW_DISK_MS milliseconds, and
 * waits until it gets a shared lock on $SLOW_DISK/gate. /proc, /sys and /dev are no disk; nor are sockets, pipes and terminals.
 * Calls past libc (rustix makes some) are not seen.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static char gate[4096];
static int log_fd = -1;
static long delay_ms;

__attribute__((constructor)) static void begin(void) {
    const char *directory = getenv("SLOW_DISK");
    const char *delay = getenv("SLOW_DISK_MS");
    char log[4096];
    if (!directory) return;
    snprintf(gate, sizeof gate, "%s/gate", directory);
    snprintf(log, sizeof log, "%s/log", directory);
    delay_ms = delay ? atol(delay) : 0;
    log_fd = syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    /* Not for programs that this one starts. */
    unsetenv("LD_PRELOAD");
    unsetenv("SLOW_DISK");
}

static void wait_for_disk(const char *what, const char *path) {
    char line[4400];
    int fd, length;
    struct timespec pause = {delay_ms / 1000, delay_ms % 1000 * 1000000};
    if (log_fd < 0) return;
    length = snprintf(line, sizeof line, "%s %s %s\n", syscall(SYS_gettid) == getpid() ? "main" : "other", what, path);
    syscall(SYS_write, log_fd, line, length);
    if (delay_ms) syscall(SYS_nanosleep, &pause, NULL);
    fd = syscall(SYS_openat, AT_FDCWD, gate, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0) return;
    syscall(SYS_flock, fd, LOCK_SH);
    syscall(SYS_close, fd);
}

static void path_is_used(const char *what, const char *path) {
    static const char *const none[] = {"/proc", "/sys", "/dev"};
    if (!path || !*path) return;
    for (int i = 0; i < 3; i++)
        if (!strncmp(path, none[i], strlen(none[i]))) return;
    wait_for_disk(what, path);
}

static void file_is_used(const char *what, int fd) {
    struct stat found;
    char name[64], path[4096] = "";
    if (log_fd < 0 || syscall(SYS_fstat, fd, &found) || !S_ISREG(found.st_mode)) return;
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    if (syscall(SYS_readlinkat, AT_FDCWD, name, path, sizeof path - 1) < 0) return;
    if (!strncmp(path, "/memfd:", 7)) return;
    path_is_used(what, path);
}

#define REAL(type, name, ...) static type (*real)(__VA_ARGS__); if (!real) real = (type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

#define OPEN(name)                                                      \
    int name(const char *path, int flags, ...) {                        \
        REAL(int, #name, const char *, int, ...);                       \
        va_list rest;                                                   \
        va_start(rest, flags);                                          \
        int mode = va_arg(rest, int);                                   \
        va_end(rest);                                                   \
        path_is_used("open", path);                                     \
        return real(path, flags, mode);                                 \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                                    \
    int name(int at, const char *path, int flags, ...) {                \
        REAL(int, #name, int, const char *, int, ...);                  \
        va_list rest;                                                   \
        va_start(rest, flags);                                          \
        int mode = va_arg(rest, int);                                   \
        va_end(rest);                                                   \
        path_is_used("open", path);                                     \
        return real(at, path, flags, mode);                             \
    }
OPENAT(openat)
OPENAT(openat64)

#define OF_PATH(type, name, what, parameters, arguments, ...)           \
    type name parameters {                                              \
        REAL(type, #name, __VA_ARGS__);                                 \
        path_is_used(what, path);                                       \
        return real arguments;                                          \
    }
OF_PATH(int, stat64, "stat", (const char *path, struct stat64 *to), (path, to), const char *, struct stat64 *)
OF_PATH(int, lstat64, "stat", (const char *path, struct stat64 *to), (path, to), const char *, struct stat64 *)
OF_PATH(int, statx, "stat", (int at, const char *path, int flags, unsigned mask, struct statx *to),
        (at, path, flags, mask, to), int, const char *, int, unsigned, struct statx *)
OF_PATH(int, access, "access", (const char *path, int mode), (path, mode), const char *, int)
OF_PATH(char *, realpath, "realpath", (const char *path, char *to), (path, to), const char *, char *)
OF_PATH(ssize_t, readlink, "readlink", (const char *path, char *to, size_t room), (path, to, room), const char *, char *, size_t)
OF_PATH(DIR *, opendir, "opendir", (const char *path), (path), const char *)
OF_PATH(int, mkdir, "mkdir", (const char *path, mode_t mode), (path, mode), const char *, mode_t)
OF_PATH(int, rmdir, "rmdir", (const char *path), (path), const char *)
OF_PATH(int, unlink, "unlink", (const char *path), (path), const char *)
OF_PATH(int, rename, "rename", (const char *path, const char *to), (path, to), const char *, const char *)
OF_PATH(int, link, "link", (const char *path, const char *to), (path, to), const char *, const char *)
OF_PATH(int, symlink, "symlink", (const char *to, const char *path), (to, path), const char *, const char *)
OF_PATH(int, chmod, "chmod", (const char *path, mode_t mode), (path, mode), const char *, mode_t)
OF_PATH(int, chdir, "chdir", (const char *path), (path), const char *)

#define OF_FILE(type, name, what, parameters, arguments, ...)           \
    type name parameters {                                              \
        REAL(type, #name, __VA_ARGS__);                                 \
        file_is_used(what, fd);                                         \
        return real arguments;                                          \
    }
OF_FILE(ssize_t, read, "read", (int fd, void *to, size_t room), (fd, to, room), int, void *, size_t)
OF_FILE(ssize_t, write, "write", (int fd, const void *from, size_t length), (fd, from, length), int, const void *, size_t)
OF_FILE(ssize_t, pread64, "read", (int fd, void *to, size_t room, off64_t at), (fd, to, room, at), int, void *, size_t, off64_t)
OF_FILE(ssize_t, pwrite64, "write", (int fd, const void *from, size_t length, off64_t at), (fd, from, length, at),
        int, const void *, size_t, off64_t)
OF_FILE(int, fsync, "fsync", (int fd), (fd), int)
OF_FILE(int, fdatasync, "fsync", (int fd), (fd), int)
OF_FILE(int, ftruncate64, "truncate", (int fd, off64_t length), (fd, length), int, off64_t)
