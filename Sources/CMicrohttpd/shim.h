#ifndef WAKEGATE_CMICROHTTPD_SHIM_H
#define WAKEGATE_CMICROHTTPD_SHIM_H
#include <microhttpd.h>
#endif
