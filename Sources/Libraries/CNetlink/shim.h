#ifndef WAKEGATE_CNETLINK_SHIM_H
#define WAKEGATE_CNETLINK_SHIM_H
// Without _GNU_SOURCE: with it the system's types differ from those of the Glibc module.
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

// Opens a socket of netlink `protocol` for the multicast `groups`; -1 with errno.
static inline int wakegate_netlink_open(int protocol, unsigned groups, int flags) {
    struct sockaddr_nl name;
    int saved, descriptor = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | flags, protocol);
    if (descriptor < 0) return -1;
    memset(&name, 0, sizeof name);
    name.nl_family = AF_NETLINK;
    name.nl_groups = groups;
    if (bind(descriptor, (struct sockaddr *)&name, sizeof name) != 0) {
        saved = errno;
        close(descriptor);
        errno = saved;
        return -1;
    }
    return descriptor;
}

// Opens a socket for changes of links and routes.
static inline int wakegate_netlink_open_route_events(void) {
    unsigned groups = RTMGRP_LINK | RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE;
    return wakegate_netlink_open(NETLINK_ROUTE, groups, SOCK_NONBLOCK);
}

// Opens a socket for the kernel's events for udev; the first group is the kernel's own.
static inline int wakegate_netlink_open_device_events(void) {
    return wakegate_netlink_open(NETLINK_KOBJECT_UEVENT, 1, SOCK_NONBLOCK);
}

// Opens a socket for queries, with a timeout for answers.
static inline int wakegate_netlink_open_questions(int milliseconds) {
    struct timeval limit = {milliseconds / 1000, milliseconds % 1000 * 1000};
    int descriptor = wakegate_netlink_open(NETLINK_ROUTE, 0, 0);
    if (descriptor >= 0) setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    return descriptor;
}

// Requests all links (RTM_GETLINK) or all routes of every family (RTM_GETROUTE).
static inline int wakegate_netlink_ask(int descriptor, int type) {
    struct {
        struct nlmsghdr head;
        struct rtgenmsg body;
    } question;
    memset(&question, 0, sizeof question);
    question.head.nlmsg_len = sizeof question;
    question.head.nlmsg_type = (unsigned short)type;
    question.head.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
    question.body.rtgen_family = AF_UNSPEC;
    return send(descriptor, &question, sizeof question, 0) == (ssize_t)sizeof question ? 0 : -1;
}

#endif
