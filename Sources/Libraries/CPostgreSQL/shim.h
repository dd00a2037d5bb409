#ifndef WAKEGATE_CPOSTGRESQL_SHIM_H
#define WAKEGATE_CPOSTGRESQL_SHIM_H
#include <libpq-fe.h>
#endif
