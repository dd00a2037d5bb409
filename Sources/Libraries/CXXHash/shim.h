#ifndef WAKEGATE_CXXHASH_SHIM_H
#define WAKEGATE_CXXHASH_SHIM_H
#include <xxhash.h>
#endif
