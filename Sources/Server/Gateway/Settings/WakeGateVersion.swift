internal import CCommit

/// The commit from which the program was built, such as `1a2b3c4d5e6f`, with the suffix `-dirty` if files were changed.
/// It is nil unless the build specified it. `deploy/build` does.
package let wakeGateCommit: String? = {
    let name = unsafe String(cString: wakegate_commit())
    return name.isEmpty ? nil : name
}()

/// The build configuration of this program.
package enum BuildKind {
    /// `debug` or `release`.
    package static var name: String {
        #if DEBUG
            "debug"
        #else
            "release"
        #endif
    }
}
