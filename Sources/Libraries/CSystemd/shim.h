#ifndef WAKEGATE_CSYSTEMD_SHIM_H
#define WAKEGATE_CSYSTEMD_SHIM_H
// Without _GNU_SOURCE: with it the system's types differ from those of the Glibc module.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>

// Returns whether `descriptor` is a listening stream socket.
static inline int wakegate_systemd_listens(int descriptor) {
    return sd_is_socket(descriptor, AF_UNSPEC, SOCK_STREAM, 1) > 0;
}

// Writes the address of a listening socket: HOST:PORT, [v6]:PORT or unix:/path; -1 if it is of another family or has no
// name that a client could use.
static inline int wakegate_systemd_address(int descriptor, char *text, size_t size) {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
        struct sockaddr_un local;
    } name;
    char host[INET6_ADDRSTRLEN];
    socklen_t length = sizeof name;
    memset(&name, 0, sizeof name);
    if (getsockname(descriptor, &name.any, &length) != 0) return -1;
    switch (name.any.sa_family) {
    case AF_INET:
        if (inet_ntop(AF_INET, &name.v4.sin_addr, host, sizeof host) == NULL) return -1;
        snprintf(text, size, "%s:%u", host, (unsigned)ntohs(name.v4.sin_port));
        return 0;
    case AF_INET6:
        if (inet_ntop(AF_INET6, &name.v6.sin6_addr, host, sizeof host) == NULL) return -1;
        snprintf(text, size, "[%s]:%u", host, (unsigned)ntohs(name.v6.sin6_port));
        return 0;
    case AF_UNIX:
        if (length <= offsetof(struct sockaddr_un, sun_path) || name.local.sun_path[0] != '/') return -1;
        snprintf(text, size, "unix:%.*s", (int)sizeof name.local.sun_path, name.local.sun_path);
        return 0;
    default: return -1;
    }
}

// Returns whether `descriptor` is the file with this device and inode.
static inline int wakegate_systemd_is_file(int descriptor, unsigned long device, unsigned long inode) {
    struct stat status;
    return fstat(descriptor, &status) == 0 && status.st_dev == device && status.st_ino == inode;
}

#endif
