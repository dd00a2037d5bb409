/// The version that `wakegate --version`, `/version` and the manuals show.
package let wakeGateVersion = "0.1.0"

/// The release date of that version, as the manuals show it.
package let wakeGateReleaseDate = "November 21, 2026"
