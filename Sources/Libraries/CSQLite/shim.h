#ifndef WAKEGATE_CSQLITE_SHIM_H
#define WAKEGATE_CSQLITE_SHIM_H
#include <sqlite3.h>

// Whether closing the last connection leaves the write-ahead log as it is.
static inline int wakegate_sqlite_keep_log_on_close(sqlite3 *database) {
    return sqlite3_db_config(database, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, (int *)0);
}
#endif
