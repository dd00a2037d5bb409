#ifndef WAKEGATE_CFILES_SHIM_H
#define WAKEGATE_CFILES_SHIM_H
// Without the system's headers: the types in them would count as this module's, and not as Glibc's.

// Renames a file unless something has the new name: EEXIST. The call is a GNU extension that Glibc's module hides.
static inline int wakegate_rename_to_unused(const char *path, const char *other) {
    extern int renameat2(int, const char *, int, const char *, unsigned);
    const int current_folder = -100;
    const unsigned no_replace = 1;
    return renameat2(current_folder, path, current_folder, other, no_replace);
}

#endif
