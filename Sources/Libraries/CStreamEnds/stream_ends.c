#define _GNU_SOURCE
#include "CStreamEnds.h"
#include <dlfcn.h>
#include <nghttp2/nghttp2.h>
#include <stdatomic.h>
#include <stddef.h>

typedef void (*set_callback)(nghttp2_session_callbacks *, nghttp2_on_stream_close_callback);

static _Atomic(nghttp2_on_stream_close_callback) curl_stream_closed;

// The streams of this thread whose reset began before END_STREAM had arrived. The end of a stream follows the head of
// its reset, unless other connections are processed in between, so a few places are enough.
static _Thread_local struct {
    const nghttp2_session *session;
    int32_t stream;
} cuts[64];
static _Thread_local size_t next_cut;

static int frame_began(nghttp2_session *session, const nghttp2_frame_hd *head, void *context) {
    (void)context;
    // The close of a reset stream precedes its session's next frame: a place that is still in use belongs to an earlier
    // session at this address.
    for (size_t index = 0; index < sizeof cuts / sizeof cuts[0]; index++) {
        if (cuts[index].session == session) cuts[index].session = NULL;
    }
    if (head->type != NGHTTP2_RST_STREAM) return 0;
    // 1 once END_STREAM has arrived; processing the reset itself also sets it.
    if (nghttp2_session_get_stream_remote_close(session, head->stream_id) != 0) return 0;
    cuts[next_cut].session = session;
    cuts[next_cut].stream = head->stream_id;
    next_cut = (next_cut + 1) % (sizeof cuts / sizeof cuts[0]);
    return 0;
}

static int stream_closed(nghttp2_session *session, int32_t stream, uint32_t code, void *context) {
    size_t index;
    for (index = 0; index < sizeof cuts / sizeof cuts[0]; index++) {
        if (cuts[index].session != session || cuts[index].stream != stream) continue;
        cuts[index].session = NULL;
        if (code == NGHTTP2_NO_ERROR) code = NGHTTP2_INTERNAL_ERROR;
    }
    return atomic_load(&curl_stream_closed)(session, stream, code, context);
}

// Returns whether the function is in libcurl, and libcurl is a separate library.
static int is_of_curl(const void *function) {
    Dl_info found, curl;
    const void *known = dlsym(RTLD_NEXT, "curl_multi_perform");
    if (known == NULL || !dladdr(function, &found) || !dladdr(known, &curl)) return 0;
    return found.dli_fbase == curl.dli_fbase;
}

void nghttp2_session_callbacks_set_on_stream_close_callback(nghttp2_session_callbacks *callbacks,
                                                            nghttp2_on_stream_close_callback callback) {
    set_callback set =
        (set_callback)dlsym(RTLD_NEXT, "nghttp2_session_callbacks_set_on_stream_close_callback");
    if (set == NULL) return;
    if (callback == NULL || !is_of_curl((const void *)callback)) {
        set(callbacks, callback);
        return;
    }
    atomic_store(&curl_stream_closed, callback);
    nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, frame_began);
    set(callbacks, stream_closed);
}
