/// The version that `wakegate --version`, `/version` and the manuals show.
package let WakeGateVersion = "0.1.0"
