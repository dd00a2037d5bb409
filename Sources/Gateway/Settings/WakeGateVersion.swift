/// The version that `wakegate --version`, `/version` and the manuals show.
package let wakeGateVersion = "0.1.0"

/// The day of that version, as the manuals show it.
package let wakeGateReleaseDate = "November 21, 2026"

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
