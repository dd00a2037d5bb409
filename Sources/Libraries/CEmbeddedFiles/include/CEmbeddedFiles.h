// The files embedded in the program: the dashboard's page and the OpenAPI documents.
//
// In C because clang's `#embed` compiles them in milliseconds. SwiftPM's `.embedInCode` writes them as Swift array
// literals, the largest of which took 38 seconds in a release build.
#ifndef WAKEGATE_CEMBEDDEDFILES_H
#define WAKEGATE_CEMBEDDEDFILES_H

#include <stddef.h>

// A file: its name without a folder, and its content. All pointers stay valid as long as the program runs.
typedef struct {
    const char *name;
    const unsigned char *bytes;
    size_t count;
} wakegate_embedded_file;

// The files of the dashboard, in no particular order.
extern const wakegate_embedded_file *const wakegate_dashboard_files;
extern const size_t wakegate_dashboard_file_count;

// The OpenAPI documents of the gateway and of the transfer agent.
extern const wakegate_embedded_file wakegate_gateway_openapi;
extern const wakegate_embedded_file wakegate_transfers_openapi;

#endif
