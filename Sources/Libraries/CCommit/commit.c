#include "CCommit.h"

const char *wakegate_commit(void) {
    return WAKEGATE_COMMIT;
}
