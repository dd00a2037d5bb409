internal import CCommit

/// The commit that the program was built of, such as `1a2b3c4d5e6f`, with `-dirty` behind it where files were changed;
/// nil where the build was not told, as `deploy/build` tells it.
package let wakeGateCommit: String? = {
    let name = unsafe String(cString: wakegate_commit())
    return name.isEmpty ? nil : name
}()

/// How this binary was built.
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
