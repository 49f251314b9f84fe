/* Preloaded into a run: counts the system calls that change files in one folder, and at a given one kills the process
 * before the call is made, or lets it and all later writes fail as on a full disk.
 *
 * FAULT_FOLDER         prefix of the paths that count
 * fault_set(kill, full) starts to count: kill at this call, counted from 1 (0: never); full from this write on (0: never)
 * fault_calls(calls)   how many there were so far, and the kind of each of the first MOST
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define KINDS 9
static const char *const kinds[KINDS] = {
    "open", "write", "pwrite", "copy_file_range", "ftruncate", "fsync", "rename", "unlink", "posix_fallocate"};
#define MOST 100000
static unsigned char calls[MOST];
static long count = 0, writes = 0, kill_at = 0, full_from = 0;

void fault_set(long kill, long full)
{
    count = writes = 0;
    kill_at = kill;
    full_from = full;
}

long fault_calls(unsigned char *found)
{
    memcpy(found, calls, sizeof calls);
    return count;
}

static int counted(const char *path)
{
    const char *folder = getenv("FAULT_FOLDER");
    return folder && path && strncmp(path, folder, strlen(folder)) == 0;
}

static const char *absolute(const char *path, char *buffer, size_t size)
{
    char here[4096];
    if (!path || path[0] == '/') return path;
    if (!getcwd(here, sizeof here)) return path;
    snprintf(buffer, size, "%s/%s", here, path);
    return buffer;
}

static const char *path_of(int handle, char *buffer, size_t size)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
    ssize_t n = readlink(link, buffer, size - 1);
    if (n < 0) return NULL;
    buffer[n] = 0;
    return buffer;
}

/* Returns 1 where the call must fail for want of room. */
static int reached(const char *call, const char *path, int writing)
{
    if (!counted(path)) return 0;
    long k = __sync_add_and_fetch(&count, 1);
    for (int i = 0; i < KINDS; i++)
        if (k <= MOST && strcmp(kinds[i], call) == 0) calls[k - 1] = i;
    if (k == kill_at) syscall(SYS_kill, getpid(), SIGKILL);
    if (!writing) return 0;
    long w = __sync_add_and_fetch(&writes, 1);
    return full_from && w >= full_from;
}

#define REAL(name) __typeof__(name) *real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)
#define FULL { errno = ENOSPC; return -1; }

static int opened(const char *call, const char *path, int flags)
{
    char buffer[8192];
    if (!(flags & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC))) return 0;
    return reached(call, absolute(path, buffer, sizeof buffer), 0);
}

#define MODE mode_t mode = 0; if (flags & O_CREAT) { va_list l; va_start(l, flags); mode = va_arg(l, mode_t); va_end(l); }
int open(const char *path, int flags, ...) { MODE REAL(open); opened("open", path, flags); return real(path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE REAL(open64); opened("open", path, flags); return real(path, flags, mode); }
int openat(int at, const char *path, int flags, ...) { MODE REAL(openat); opened("open", path, flags); return real(at, path, flags, mode); }
int openat64(int at, const char *path, int flags, ...) { MODE REAL(openat64); opened("open", path, flags); return real(at, path, flags, mode); }

#define BY_HANDLE(call, writing) char buffer[8192]; if (reached(call, path_of(handle, buffer, sizeof buffer), writing)) FULL
ssize_t write(int handle, const void *data, size_t size) { REAL(write); BY_HANDLE("write", 1) return real(handle, data, size); }
ssize_t pwrite(int handle, const void *data, size_t size, off_t at) { REAL(pwrite); BY_HANDLE("pwrite", 1) return real(handle, data, size, at); }
ssize_t pwrite64(int handle, const void *data, size_t size, off64_t at) { REAL(pwrite64); BY_HANDLE("pwrite", 1) return real(handle, data, size, at); }
ssize_t copy_file_range(int from, off64_t *a, int handle, off64_t *b, size_t size, unsigned flags)
{ REAL(copy_file_range); BY_HANDLE("copy_file_range", 1) return real(from, a, handle, b, size, flags); }
int posix_fallocate(int handle, off_t at, off_t size)
{ REAL(posix_fallocate); char buffer[8192]; if (reached("posix_fallocate", path_of(handle, buffer, sizeof buffer), 1)) return ENOSPC; return real(handle, at, size); }
int posix_fallocate64(int handle, off64_t at, off64_t size)
{ REAL(posix_fallocate64); char buffer[8192]; if (reached("posix_fallocate", path_of(handle, buffer, sizeof buffer), 1)) return ENOSPC; return real(handle, at, size); }
int ftruncate(int handle, off_t size) { REAL(ftruncate); BY_HANDLE("ftruncate", 0) return real(handle, size); }
int ftruncate64(int handle, off64_t size) { REAL(ftruncate64); BY_HANDLE("ftruncate", 0) return real(handle, size); }
int fsync(int handle) { REAL(fsync); BY_HANDLE("fsync", 0) return real(handle); }

#define BY_PATH(call) char buffer[8192]; reached(call, absolute(path, buffer, sizeof buffer), 0);
int rename(const char *path, const char *to) { REAL(rename); BY_PATH("rename") return real(path, to); }
int renameat(int a, const char *path, int b, const char *to) { REAL(renameat); BY_PATH("rename") return real(a, path, b, to); }
int unlink(const char *path) { REAL(unlink); BY_PATH("unlink") return real(path); }
int unlinkat(int a, const char *path, int flags) { REAL(unlinkat); BY_PATH("unlink") return real(a, path, flags); }
