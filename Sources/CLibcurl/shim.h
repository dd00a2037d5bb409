#ifndef WAKEGATE_CLIBCURL_SHIM_H
#define WAKEGATE_CLIBCURL_SHIM_H
#include <curl/curl.h>
#endif
