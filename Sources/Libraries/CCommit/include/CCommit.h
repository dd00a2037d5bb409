// The commit that the program was built of.
//
// It is in C because a definition of the manifest reaches C alone, and because one small file is all that is compiled
// again when the commit is another.
#ifndef WAKEGATE_CCOMMIT_H
#define WAKEGATE_CCOMMIT_H

// Its name; "" where nobody told the build. Lives as long as the program.
const char *wakegate_commit(void);

#endif
