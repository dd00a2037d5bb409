#ifndef WAKEGATE_CSQLITE_SHIM_H
#define WAKEGATE_CSQLITE_SHIM_H
#include <sqlite3.h>

// Makes closing the last connection leave the write-ahead log unchanged.
static inline int wakegate_sqlite_keep_log_on_close(sqlite3 *database) {
    return sqlite3_db_config(database, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, (int *)0);
}
#endif
