// Makes libcurl detect HTTP/2 streams that were cut.
//
// libcurl treats a stream that its server resets with NO_ERROR as one that has ended in order, even if END_STREAM never
// arrived. Only libnghttp2 knows the difference. This target therefore defines the function of libnghttp2 with which
// libcurl sets its callback for the end of a stream, and reports such a reset to libcurl as INTERNAL_ERROR. The dynamic
// linker prefers the definition in the program. Callbacks of other callers are passed to libnghttp2 unchanged.
#ifndef WAKEGATE_CSTREAMENDS_H
#define WAKEGATE_CSTREAMENDS_H

#endif
