#ifndef WAKEGATE_CMICROHTTPD_SHIM_H
#define WAKEGATE_CMICROHTTPD_SHIM_H
#include <microhttpd.h>
#include <netinet/in.h>
#include <string.h>

typedef void *(*wakegate_uri_callback)(void *, const char *, struct MHD_Connection *);

// A daemon without thread and without listener, driven by its epoll descriptor; timeout in seconds, memory in bytes.
static inline struct MHD_Daemon *wakegate_mhd_start(
    MHD_AccessHandlerCallback access, MHD_RequestCompletedCallback completed, MHD_NotifyConnectionCallback connection,
    wakegate_uri_callback uri, void *context, unsigned timeout, size_t memory, unsigned connections
) {
    return MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_ITC | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL,
        access, context,
        MHD_OPTION_NOTIFY_COMPLETED, completed, context, MHD_OPTION_NOTIFY_CONNECTION, connection, context,
        MHD_OPTION_URI_LOG_CALLBACK, uri, context, MHD_OPTION_CONNECTION_TIMEOUT, timeout,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, memory, MHD_OPTION_CONNECTION_LIMIT, connections, MHD_OPTION_END
    );
}
// The address is only used for limits per address, which are off.
static inline int wakegate_mhd_add(struct MHD_Daemon *daemon, int descriptor) {
    struct sockaddr_in address;
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    return MHD_add_connection(daemon, descriptor, (const struct sockaddr *)&address, sizeof address) == MHD_YES;
}
static inline int wakegate_mhd_epoll(struct MHD_Daemon *daemon) {
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD);
    return info == NULL ? -1 : info->epoll_fd;
}
static inline void *wakegate_mhd_context(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info == NULL ? NULL : info->socket_context;
}
static inline struct MHD_Response *wakegate_mhd_response(const void *bytes, size_t count) {
    return MHD_create_response_from_buffer(count, (void *)bytes, MHD_RESPMEM_MUST_COPY);
}
static inline struct MHD_Response *wakegate_mhd_stream(
    MHD_ContentReaderCallback reader, void *context, MHD_ContentReaderFreeCallback forget
) {
    return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 16384, reader, context, forget);
}
static inline void wakegate_mhd_fields(
    struct MHD_Connection *connection, MHD_KeyValueIterator iterator, void *context
) {
    MHD_get_connection_values(connection, MHD_HEADER_KIND, iterator, context);
}
// Whether there is work that no descriptor will announce.
static inline int wakegate_mhd_has_work(struct MHD_Daemon *daemon) {
    MHD_UNSIGNED_LONG_LONG milliseconds;
    return MHD_get_timeout(daemon, &milliseconds) == MHD_YES && milliseconds == 0;
}
#endif
