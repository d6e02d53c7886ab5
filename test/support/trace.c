/*
 * Trace: loaded in front of the C library, notes the calls that make a delivery durable and the answer that
 * says so, in the order in which they return, one line each: "fsync PATH", "rename FROM TO", "answer".
 * TRACE_LOG names the file. Only for tests, only on Linux.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static void note(const char *line, int length) {
  static int log_fd = -2;
  static ssize_t (*real_write)(int, const void *, size_t);
  if (log_fd == -2) {
    const char *path = getenv("TRACE_LOG");
    real_write = dlsym(RTLD_NEXT, "write");
    log_fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
  }
  if (log_fd >= 0 && real_write(log_fd, line, length) != length) abort();
}

static void note_sync(int fd) {
  char link[64], path[4096], line[4200];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t n = readlink(link, path, sizeof path - 1);
  if (n < 0) return;
  path[n] = 0;
  note(line, snprintf(line, sizeof line, "fsync %s\n", path));
}

int fsync(int fd) {
  static int (*real)(int);
  if (!real) real = dlsym(RTLD_NEXT, "fsync");
  int result = real(fd);
  if (result == 0) note_sync(fd);
  return result;
}

int fdatasync(int fd) {
  static int (*real)(int);
  if (!real) real = dlsym(RTLD_NEXT, "fdatasync");
  int result = real(fd);
  if (result == 0) note_sync(fd);
  return result;
}

int rename(const char *from, const char *to) {
  static int (*real)(const char *, const char *);
  if (!real) real = dlsym(RTLD_NEXT, "rename");
  int result = real(from, to);
  char line[8400];
  if (result == 0) note(line, snprintf(line, sizeof line, "rename %s %s\n", from, to));
  return result;
}

static void note_answer(const void *bytes, size_t length) {
  if (length >= 12 && memcmp(bytes, "HTTP/1.1 200", 12) == 0) note("answer\n", 7);
}

/* An answer is noted before it is written: nothing that comes after may count as done in time. */
ssize_t write(int fd, const void *bytes, size_t length) {
  static ssize_t (*real)(int, const void *, size_t);
  if (!real) real = dlsym(RTLD_NEXT, "write");
  note_answer(bytes, length);
  return real(fd, bytes, length);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
  static ssize_t (*real)(int, const struct iovec *, int);
  if (!real) real = dlsym(RTLD_NEXT, "writev");
  if (count > 0) note_answer(parts[0].iov_base, parts[0].iov_len);
  return real(fd, parts, count);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
  static ssize_t (*real)(int, const struct msghdr *, int);
  if (!real) real = dlsym(RTLD_NEXT, "sendmsg");
  if (message->msg_iovlen > 0) note_answer(message->msg_iov[0].iov_base, message->msg_iov[0].iov_len);
  return real(fd, message, flags);
}
