#ifndef WAKEGATE_CLINUX_SHIM_H
#define WAKEGATE_CLINUX_SHIM_H
// Without _GNU_SOURCE: with it the system's types differ from those of the Glibc module.
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

// Returns the client's network: an IPv4 address below bits that no network has, or the first half of an IPv6 address; 0
// for a socket file. The loopback address ::1, whose first half is 0, is 1.
static inline uint64_t wakegate_network(const struct sockaddr_storage *name) {
    const unsigned char *bytes;
    uint64_t network = 0;
    int index;
    if (name->ss_family == AF_INET) {
        return 0xFFFFFFFF00000000u | ntohl(((const struct sockaddr_in *)name)->sin_addr.s_addr);
    }
    if (name->ss_family != AF_INET6) return 0;
    bytes = ((const struct sockaddr_in6 *)name)->sin6_addr.s6_addr;
    if (IN6_IS_ADDR_V4MAPPED(&((const struct sockaddr_in6 *)name)->sin6_addr)) {
        for (index = 12; index < 16; index++) network = network << 8 | bytes[index];
        return 0xFFFFFFFF00000000u | network;
    }
    for (index = 0; index < 8; index++) network = network << 8 | bytes[index];
    return network == 0 ? 1 : network;
}

// accept4 is a GNU extension that Glibc's module hides.
static inline int wakegate_accept(int listener, uint64_t *network) {
    extern int accept4(int, struct sockaddr *, socklen_t *, int);
    struct sockaddr_storage name;
    socklen_t size = sizeof name;
    int descriptor = accept4(listener, (struct sockaddr *)&name, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (descriptor >= 0) *network = wakegate_network(&name);
    return descriptor;
}

static inline int wakegate_error(void) { return errno; }

static inline void wakegate_no_delay(int descriptor) {
    int on = 1;
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

// Makes a descriptor non-blocking.
static inline void wakegate_no_blocking(int descriptor) {
    int flags = fcntl(descriptor, F_GETFL);
    if (flags >= 0) fcntl(descriptor, F_SETFL, flags | O_NONBLOCK);
}

// Returns the number of bytes sent to a socket file that its peer has not read; -1 if unknown.
static inline int wakegate_unread_bytes(int descriptor) {
    extern int ioctl(int, unsigned long, ...);
    const unsigned long unread_output = 0x5411;
    int count = -1;
    return ioctl(descriptor, unread_output, &count) == 0 ? count : -1;
}

// Returns the number of processors this process may run on; 0 if unknown. The call is a GNU extension that Glibc's
// module hides, and Foundation's count is that of the machine.
static inline int wakegate_processors(void) {
    extern int sched_getaffinity(pid_t, size_t, unsigned long *);
    unsigned long set[128] = {0};
    size_t index;
    int count = 0;
    if (sched_getaffinity(0, sizeof set, set) != 0) return 0;
    for (index = 0; index < sizeof set / sizeof *set; index++) count += __builtin_popcountl(set[index]);
    return count;
}

// Returns a bound TCP socket, for IPv6 also bound for IPv4; -1 with errno, or with the resolver's error in *resolver.
static inline int wakegate_bind_tcp(const char *host, unsigned short port, int *resolver) {
    struct addrinfo hints, *found = NULL;
    char service[8];
    int on = 1, off = 0, descriptor, saved;
    memset(&hints, 0, sizeof hints);
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
    snprintf(service, sizeof service, "%u", (unsigned)port);
    *resolver = getaddrinfo(host, service, &hints, &found);
    if (*resolver != 0) return -1;
    descriptor = socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (descriptor >= 0) {
        setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (found->ai_family == AF_INET6) setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
        if (bind(descriptor, found->ai_addr, found->ai_addrlen) != 0) {
            saved = errno;
            close(descriptor);
            errno = saved;
            descriptor = -1;
        }
    }
    saved = errno;
    freeaddrinfo(found);
    errno = saved;
    return descriptor;
}

static inline void wakegate_name_unix(struct sockaddr_un *name, const char *path) {
    memset(name, 0, sizeof *name);
    name->sun_family = AF_UNIX;
    strncpy(name->sun_path, path, sizeof name->sun_path - 1);
}

// Returns whether `path` is a socket file without a listener.
static inline int wakegate_is_stale_unix(const char *path) {
    struct sockaddr_un name;
    struct stat status;
    int descriptor, stale;
    if (lstat(path, &status) != 0 || !S_ISSOCK(status.st_mode)) return 0;
    descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (descriptor < 0) return 0;
    wakegate_name_unix(&name, path);
    stale = connect(descriptor, (struct sockaddr *)&name, sizeof name) != 0 && errno == ECONNREFUSED;
    close(descriptor);
    return stale;
}

// Opens the file at `path` itself, even a link, neither for reading nor for writing.
static inline int wakegate_open_file_itself(const char *path) {
    // The name without underscores needs _GNU_SOURCE.
    return open(path, __O_PATH | O_NOFOLLOW | O_CLOEXEC);
}

// Returns a bound socket file with mode 0660, or 0600 for its owner only. The mode is set by the umask, so that other
// users can never connect in between.
static inline int wakegate_bind_unix(const char *path, int is_private) {
    struct sockaddr_un name;
    int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), result, saved;
    mode_t mask;
    if (descriptor < 0) return -1;
    wakegate_name_unix(&name, path);
    mask = umask(is_private ? 0177 : 0117);
    result = bind(descriptor, (struct sockaddr *)&name, sizeof name);
    saved = errno;
    umask(mask);
    if (result != 0) {
        close(descriptor);
        errno = saved;
        return -1;
    }
    return descriptor;
}

// Returns the user of the process that connected to a socket file; -1 if unknown. The structure is a GNU extension that
// Glibc's module hides.
static inline int64_t wakegate_peer_user(int descriptor) {
    struct { pid_t pid; uid_t uid; gid_t gid; } peer;
    socklen_t size = sizeof peer;
    if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || size != sizeof peer) return -1;
    return (int64_t)peer.uid;
}

// Returns the port of a TCP socket, which is at the same position in both families.
static inline int wakegate_bound_port(int descriptor) {
    struct sockaddr_in6 name;
    socklen_t size = sizeof name;
    if (getsockname(descriptor, (struct sockaddr *)&name, &size) != 0) return 0;
    return ntohs(name.sin6_port);
}

// Raises the limit of descriptors as far as allowed, and returns it.
static inline long wakegate_raise_descriptor_limit(void) {
    struct rlimit limit, raised;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;
    raised = limit;
    raised.rlim_cur = raised.rlim_max;
    if (limit.rlim_cur < limit.rlim_max && setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
    return limit.rlim_cur > 1000000 ? 1000000 : (long)limit.rlim_cur;
}

// Returns 1 if the mapping `line` of /proc/self/maps contains `address`.
static inline int wakegate_is_mapping(const char *line, uintptr_t address) {
    uintptr_t bounds[2] = {0, 0};
    int side = 0;
    for (; *line != '\0' && *line != ' '; line++) {
        char digit = *line;
        if (digit == '-') side = 1;
        else bounds[side] = bounds[side] << 4 | (uintptr_t)(digit <= '9' ? digit - '0' : digit - 'a' + 10);
    }
    return address >= bounds[0] && address < bounds[1];
}

// Writes the path of the file mapped at `address` to `room`; returns 0 if there is none. Safe in signal handlers.
static inline int wakegate_mapped_file(uintptr_t address, char *room, int size) {
    char chunk[1024];
    char line[4400];
    int used = 0, count, index, found = 0, maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (maps < 0) return 0;
    while (!found && (count = (int)read(maps, chunk, sizeof chunk)) > 0) {
        for (index = 0; index < count && !found; index++) {
            if (chunk[index] != '\n') {
                if (used < (int)sizeof line - 1) line[used++] = chunk[index];
                continue;
            }
            line[used] = '\0';
            used = 0;
            if (!wakegate_is_mapping(line, address)) continue;
            char *path = strchr(line, '/');
            if (path == NULL) break;
            strncpy(room, path, (size_t)size - 1);
            room[size - 1] = '\0';
            found = 1;
        }
    }
    close(maps);
    return found;
}

static inline void wakegate_write_text(const char *text) {
    ssize_t written = write(STDERR_FILENO, text, strlen(text));
    (void)written;
}

// Handles access to a mapped file that was truncated: reports the file, and ends the process with status 1. Other bus
// errors have their default effect.
static inline void wakegate_bus_error(int number, siginfo_t *info, void *context) {
    char path[4200];
    (void)context;
    if (info->si_code <= 0 || !wakegate_mapped_file((uintptr_t)info->si_addr, path, sizeof path)) {
        signal(number, SIG_DFL);
        return;
    }
    wakegate_write_text("wakegate: ");
    wakegate_write_text(path);
    wakegate_write_text(" was cut or cannot be read any more while the gateway used it. Whatever was answered is in the "
                        "journal. See who touches the state folder, and to its disk, and start WakeGate again.\n");
    _exit(1);
}

// Makes the process report the file when it accesses a truncated mapped file.
static inline void wakegate_explain_bus_errors(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = wakegate_bus_error;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGBUS, &action, NULL);
}

#endif
