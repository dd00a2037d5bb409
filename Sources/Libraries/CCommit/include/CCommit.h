// The commit from which the program was built.
//
// In C because a definition in the manifest only reaches C code, and because only one small file is recompiled for
// another commit.
#ifndef WAKEGATE_CCOMMIT_H
#define WAKEGATE_CCOMMIT_H

// Returns the commit's name; "" if the build has none. Valid as long as the program runs.
const char *wakegate_commit(void);

#endif
