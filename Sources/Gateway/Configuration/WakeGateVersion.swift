/// The version that `wakegate --version`, `/version` and the manuals show.
package let wakeGateVersion = "0.1.0"
