/// The version in `wakegate --version`, `/version` and the manuals.
package let wakeGateVersion = "0.1.0"

/// The release date of that version, for the manuals.
package let wakeGateReleaseDate = "November 21, 2026"
