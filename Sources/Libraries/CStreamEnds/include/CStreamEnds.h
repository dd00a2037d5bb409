// Makes libcurl see that an HTTP/2 stream was cut.
//
// libcurl takes a stream that its server resets with NO_ERROR for one that has ended in order, even if END_STREAM never
// came. libnghttp2 alone knows the difference, so this target defines the function of libnghttp2 by which libcurl sets
// its callback for the end of a stream, and reports such a reset to libcurl as INTERNAL_ERROR. The dynamic linker prefers
// the definition of the program. Callbacks of anybody else reach libnghttp2 as they are.
#ifndef WAKEGATE_CSTREAMENDS_H
#define WAKEGATE_CSTREAMENDS_H

#endif
