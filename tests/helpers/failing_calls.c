/* Loaded before the C library (LD_PRELOAD): the n-th call that changes files below a folder fails, or kills the process.
   SQLite and Python both come by here. See failing_calls.py. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static char folder[4096];
static long seen, first, last;
static int number;

/* Calls first to last fail with an error number; 0 kills. */
void arm(const char *below, long from, long to, int error) {
    snprintf(folder, sizeof folder, "%s", below);
    seen = 0, first = from, last = to, number = error;
}
void disarm(void) { folder[0] = 0; }
long calls(void) { return seen; }

static int fails(const char *path) {
    if (!folder[0] || strncmp(path, folder, strlen(folder))) return 0;
    if (++seen < first || seen > last) return 0;
    if (!number) raise(SIGKILL);
    errno = number;
    return 1;
}
static int fails_open(int handle) {
    char name[64], path[4096];
    if (!folder[0]) return 0;
    snprintf(name, sizeof name, "/proc/self/fd/%d", handle);
    ssize_t length = readlink(name, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return fails(path);
}
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define ON_HANDLE(kind, name, given, ...) kind name given { return fails_open(handle) ? -1 : REAL(name)(__VA_ARGS__); }
#define ON_PATH(name, given, ...) int name given { return fails(path) ? -1 : REAL(name)(__VA_ARGS__); }
#define OPENS(name)                                                            \
    int name(const char *path, int flags, ...) {                               \
        va_list more;                                                          \
        va_start(more, flags);                                                 \
        mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;              \
        va_end(more);                                                          \
        return flags & O_CREAT && fails(path) ? -1 : REAL(name)(path, flags, mode); \
    }

ON_HANDLE(ssize_t, write, (int handle, const void *data, size_t size), handle, data, size)
ON_HANDLE(ssize_t, pwrite, (int handle, const void *data, size_t size, off_t at), handle, data, size, at)
ON_HANDLE(ssize_t, pwrite64, (int handle, const void *data, size_t size, off64_t at), handle, data, size, at)
ON_HANDLE(int, fsync, (int handle), handle)
ON_HANDLE(int, fdatasync, (int handle), handle)
ON_HANDLE(int, ftruncate, (int handle, off_t size), handle, size)
ON_HANDLE(int, ftruncate64, (int handle, off64_t size), handle, size)
ON_PATH(rename, (const char *path, const char *new), path, new)
ON_PATH(link, (const char *path, const char *new), path, new)
/* A full disk still removes files, and changes their modes. */
int unlink(const char *path) { return number != ENOSPC && fails(path) ? -1 : REAL(unlink)(path); }
int chmod(const char *path, mode_t mode) { return number != ENOSPC && fails(path) ? -1 : REAL(chmod)(path, mode); }
OPENS(open)
OPENS(open64)

int posix_fallocate(int handle, off_t at, off_t size) {
    return fails_open(handle) ? errno : REAL(posix_fallocate)(handle, at, size);
}
int posix_fallocate64(int handle, off64_t at, off64_t size) {
    return fails_open(handle) ? errno : REAL(posix_fallocate64)(handle, at, size);
}
