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
